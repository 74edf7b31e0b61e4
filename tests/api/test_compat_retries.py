"""A failed workflow, triggered again or retried from the dead letters.

The failed nodes run again, and the old id still works.
"""

from __future__ import annotations

import asyncio

import pytest

from penstock.api import compat_views as views
from penstock.api.access import Caller
from tests.api.compat_app import ONCE, PREFIXES, Client, node, serving

FRAGILE = (
    node("a", handler="fragile", config={"x": 1}),
    node("b", "a", handler="fragile", config={"y": "{{ a.x }}"}, **ONCE),
    node("output", "b", handler="output"),
)
SUBMITTER, OPERATOR = Caller("k1", "ci", ("submit",)), Caller("k2", "ops", ("operate",))


async def failed(client: Client) -> str:
    client.broken.add("b")
    status = await client.run(*FRAGILE)
    assert status["status"] == "FAILED"
    client.broken.clear()
    return str(status["execution_id"])


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("path", ["/workflow/trigger/{}", "/workflows/{}/trigger"])
def test_triggering_a_failed_workflow_runs_only_what_failed(tmp_path, prefix, path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await failed(client)
            again = await client.call(
                "POST", prefix + path.format(name), {"params": {"ignored": 1}}
            )
            assert again.status == 200
            assert (again.body["retry_of"], again.body["status"]) == (name, "RUNNING")
            retry = again.body["execution_id"]
            assert retry != name
            assert (await client.reach(retry))["status"] == "COMPLETED"
            assert client.ran == ["a", "b", "b"]

    asyncio.run(story())


def test_the_old_id_shows_the_retry(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await failed(client)
            retry = (await client.trigger(name)).body["execution_id"]
            status = await client.reach(name, "COMPLETED")
            assert (status["execution_id"], status["retried_as"]) == (name, retry)
            assert status["node_states"] == dict.fromkeys(("a", "b", "output"), "COMPLETED")
            assert status["error"] is None
            results = await client.get(f"/workflow/{name}/results")
            assert (results["execution_id"], results["completed"]) == (name, True)
            assert results["result"] == {"b": {"y": 1}}
            assert results["results"]["a"] == {"x": 1}
            assert (await client.trigger(name)).status == 409

    asyncio.run(story())


def test_the_old_id_goes_on_through_many_retries(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await failed(client)
            client.broken.add("b")
            for _ in range(3):
                retry = (await client.trigger(name)).body["execution_id"]
                assert (await client.reach(retry))["status"] == "FAILED"
                assert (await client.get(f"/workflow/{name}"))["retried_as"] == retry
            client.broken.clear()
            assert (await client.trigger(name)).status == 200
            await client.reach(name, "COMPLETED")
            assert client.ran == ["a"] + ["b"] * 5

    asyncio.run(story())


def test_a_retry_that_runs_is_not_triggered_again(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            client.broken.add("b")
            slow = (*FRAGILE[:2], node("c", "b", handler="gated"))
            name = (await client.run(*slow))["id"]
            client.broken.clear()
            assert (await client.trigger(name)).status == 200
            await client.reach(name, "RUNNING")
            assert (await client.trigger(name)).status == 409
            assert (await client.call("DELETE", f"/workflow/{name}")).status == 200
            await client.reach(name, "CANCELLED")

    asyncio.run(story())


def test_many_triggers_of_a_failed_workflow_make_one_retry(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await failed(client)
            answers = await asyncio.gather(*(client.trigger(name) for _ in range(10)))
            assert {answer.status for answer in answers} <= {200, 409}
            assert (
                len({answer.body["execution_id"] for answer in answers if answer.status == 200})
                == 1
            )
            await client.reach(name, "COMPLETED")
            assert client.ran == ["a", "b", "b"]

    asyncio.run(story())


def test_who_may_only_submit_cannot_retry_by_triggering(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await failed(client)
            path = f"/workflow/trigger/{name}"
            refused = await client.call("POST", path, caller=SUBMITTER)
            assert (refused.status, refused.body["code"]) == (403, "forbidden")
            assert (await client.get(f"/workflow/{name}"))["retried_as"] is None
            assert (await client.call("POST", path, caller=OPERATOR)).status == 200
            waiting = await client.submit(*FRAGILE)
            assert (
                await client.call("POST", f"/workflow/trigger/{waiting}", caller=SUBMITTER)
            ).status == 200
            await client.reach(waiting, "COMPLETED")

    asyncio.run(story())


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_dead_letter_is_listed_and_retried(tmp_path, prefix):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await failed(client)
            listed = await client.get(f"{prefix}/admin/dlq")
            assert set(listed) == set(views.CompatLetters.__struct_encode_fields__)
            assert (listed["count"], listed["next_cursor"]) == (1, None)
            [dead_letter] = listed["items"]
            assert set(dead_letter) == set(views.CompatLetter.__struct_encode_fields__)
            assert (
                dead_letter["execution_id"],
                dead_letter["node_id"],
                dead_letter["handler"],
            ) == (
                name,
                "b",
                "fragile",
            )
            assert (dead_letter["name"], dead_letter["attempts"]) == ("flow", 1)
            assert "b is broken" in dead_letter["error"]
            path = f"{prefix}/admin/dlq/{dead_letter['id']}/retry"
            retried = await client.call("POST", path)
            assert retried.status == 200
            assert set(retried.body) == set(views.LetterRetried.__struct_encode_fields__)
            assert retried.body["retry_of"] == name
            assert (await client.reach(retried.body["execution_id"]))["status"] == "COMPLETED"
            assert (await client.get(f"/workflow/{name}"))["status"] == "COMPLETED"
            assert (await client.call("POST", path)).status == 409
            assert (await client.get(f"{prefix}/admin/dlq"))["items"] == []

    asyncio.run(story())


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_dead_letter_is_dropped(tmp_path, prefix):
    async def story() -> None:
        async with serving(tmp_path) as client:
            await failed(client)
            path = f"{prefix}/admin/dlq/{(await client.dead_letter())['id']}"
            deleted = await client.call("DELETE", path)
            assert deleted.status == 200
            assert set(deleted.body) == set(views.LetterDropped.__struct_encode_fields__)
            assert (await client.get(f"{prefix}/admin/dlq"))["items"] == []
            assert (await client.call("DELETE", path)).status == 409
            assert (await client.call("POST", f"{path}/retry")).status == 409

    asyncio.run(story())


def test_dead_letters_come_in_pages(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            names = [await failed(client) for _ in range(5)]
            seen: list[str] = []
            query = "limit=2"
            while query:
                page = await client.get("/admin/dlq", query=query)
                assert page["count"] == len(page["items"]) <= 2
                seen += [dead_letter["execution_id"] for dead_letter in page["items"]]
                query = f"limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else ""
            assert seen == names[::-1]

    asyncio.run(story())
