"""Approvals over HTTP: the inbox, who may decide, and that the first decision counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Engine, ExecutionHandle, Workflow, testing
from penstock.errors import Conflict, InvalidInput, NotFound, Unauthorized
from penstock.service.approvals import Decider
from penstock.service.submissions import StartRequest
from tests.api.caller import Caller, assert_problem
from tests.api.gates import GatedService, gated_service
from tests.waiting import until, until_now

FORM = {"type": "object", "required": ["tone"], "properties": {"tone": {"enum": ["warm"]}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("approvals")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def letter(**config: Any) -> dict[str, Any]:
    release = {"id": "release", "handler": "approval", "config": {"title": "Send?", **config}}
    send = {"id": "send", "handler": "echo", "config": {"ok": "{{ release.approved }}"}}
    return {"name": "letter", "nodes": [release, send]}


def asking(api: Caller, **config: Any) -> str:
    """An execution that waits for a decision."""
    execution_id = api.start(letter(**config))
    path = f"/executions/{execution_id}"
    until_now(lambda: api.shown(path)["nodes"]["release"]["state"] == "WAITING")
    return execution_id


def test_an_open_approval_is_in_the_inbox_until_it_is_decided(api: Caller) -> None:
    execution_id = asking(api, text="Dear Ada", form=FORM)
    (item,) = [item for item in api.items("/approvals") if item["execution_id"] == execution_id]
    assert (item["node_id"], item["title"], item["text"]) == ("release", "Send?", "Dear Ada")
    assert (item["form"], item["may_decide"], item["needed"]) == (FORM, True, 1)

    path = f"/executions/{execution_id}/approvals/release"
    body = {"decision": "approved", "form": {"tone": "warm"}, "by": "Ada"}
    answer = api.post(path, body)
    assert (answer.status, answer.body["is_final"], answer.body["by"]) == (200, True, "Ada")
    assert api.until_state(execution_id, "COMPLETED")["output"] == {"send": {"ok": True}}
    assert execution_id not in [item["execution_id"] for item in api.items("/approvals")]
    assert api.items(f"/executions/{execution_id}/signals") == []

    again = api.post(path, body)
    assert_problem(again, 409, "conflict")
    assert "approved by Ada" in again.body["detail"]


def test_open_approvals_come_in_pages(api: Caller) -> None:
    execution_ids = [asking(api) for _ in range(3)]
    paged = api.items("/approvals", limit=1)
    assert paged == api.items("/approvals")
    assert [item["execution_id"] for item in paged][-3:] == execution_ids


def test_what_can_not_be_decided_is_refused(api: Caller) -> None:
    execution_id = asking(api, form=FORM, comment="on_reject")
    path = f"/executions/{execution_id}/approvals"
    unfit = api.post(f"{path}/release", {"decision": "approved", "form": {"tone": "cold"}})
    assert assert_problem(unfit, 422, "invalid_input")["problems"][0]["path"] == "form.tone"
    assert_problem(api.post(f"{path}/release", {"decision": "rejected"}), 422, "invalid_input")
    assert_problem(api.post(f"{path}/release", {"decision": "perhaps"}), 422)
    assert_problem(api.post(f"{path}/send", {"decision": "approved"}), 409, "conflict")
    assert_problem(api.post(f"{path}/nobody", {"decision": "approved"}), 404, "not_found")
    forged = api.post(f"/executions/{execution_id}/signals/~decision:1:release")
    assert_problem(forged, 422, "invalid_input")
    body = {"decision": "rejected", "comment": "no"}
    assert api.post(f"{path}/release", body).status == 200
    assert api.until_state(execution_id, "COMPLETED")["output"] == {"send": {"ok": False}}


def test_a_cancel_closes_an_approval(api: Caller) -> None:
    execution_id = asking(api)
    api.post(f"/executions/{execution_id}/cancel")
    api.until_state(execution_id, "CANCELLED")
    path = f"/executions/{execution_id}/approvals/release"
    assert_problem(api.post(path, {"decision": "approved"}), 409, "conflict")
    assert execution_id not in [item["execution_id"] for item in api.items("/approvals")]


@asynccontextmanager
async def asked(folder: Path, **config: Any) -> AsyncIterator[tuple[Engine, ExecutionHandle]]:
    flow = Workflow("letter")
    flow.approval("release", "Send?", config=config)
    async with Engine(f"sqlite:///{folder}/store.db") as engine:
        execution = await engine.start(flow)

        async def is_open() -> bool:
            return bool((await execution.status()).nodes["release"]["state"] == "WAITING")

        await until(is_open)
        yield engine, execution


def test_of_many_decisions_at_once_as_many_count_as_are_needed(tmp_path: Path) -> None:
    async def main() -> None:
        async with asked(tmp_path, needed=2) as (_, execution):
            deciding = [execution.approve("release", by=f"p{number % 4}") for number in range(12)]
            answers = await asyncio.gather(*deciding, return_exceptions=True)
            decided = [answer["is_final"] for answer in answers if isinstance(answer, dict)]
            assert sorted(decided) == [False, True]
            assert sum(isinstance(answer, Conflict) for answer in answers) == 10
            result = await execution.result()
            output = result.nodes["release"]["output"]
            people = {item["by"] for item in output["decisions"]}
            assert (len(people), output["approved"]) == (2, True)

    asyncio.run(main())


def test_the_same_person_decides_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with asked(tmp_path, needed=2) as (_, execution):
            assert not (await execution.approve("release", by="ada"))["is_final"]
            with pytest.raises(Conflict, match="you have decided already"):
                await execution.approve("release", by="ada")
            assert (await execution.approve("release", by="bob"))["is_final"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("approvers", "decider", "message"),
    [
        ({}, Decider("x", "k1", ["submit"]), "scope approve"),
        ({"scope": "admin"}, Decider("x", "k1", ["operate"]), "scope admin"),
        ({"keys": ["k2"]}, Decider("x", "k1", ["approve"]), "isn't one of them"),
    ],
)
def test_only_those_who_may_decide_can(
    tmp_path: Path, approvers: dict[str, Any], decider: Decider, message: str
) -> None:
    async def main() -> None:
        async with asked(tmp_path, approvers=approvers) as (engine, execution):
            approvals = engine.service.approvals
            (item,), _ = await approvals.inbox(decider)
            assert item.may_decide is False
            with pytest.raises(Unauthorized, match=message):
                await approvals.decide(execution.id, "release", "approved", decider)
            allowed = Decider("y", "k2", ["admin"])
            await approvals.decide(execution.id, "release", "approved", allowed)

    asyncio.run(main())


def test_whoever_started_it_may_not_decide_it_if_the_document_says_so(tmp_path: Path) -> None:
    document = letter(approvers={"not_starter": True})

    async def main() -> None:
        async with Engine(f"sqlite:///{tmp_path}/store.db") as engine:
            key, token = await engine.service.keys.create("ci", ["operate"])
            assert token
            request = StartRequest(workflow=document, key_scope=key.id)
            submitted = await engine.service.submissions.submit(request)

            async def is_open() -> bool:
                status = await engine.status(submitted.execution_id)
                return bool(status.nodes["release"]["state"] == "WAITING")

            await until(is_open)
            approvals = engine.service.approvals
            starter = Decider("ci", key.id, ["operate"])
            with pytest.raises(Unauthorized, match="started"):
                await approvals.decide(submitted.execution_id, "release", "approved", starter)
            other = Decider("ops", "k9", ["approve"])
            await approvals.decide(submitted.execution_id, "release", "approved", other)

    asyncio.run(main())


def test_decisions_of_nobody_and_about_nothing_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with asked(tmp_path, form=FORM) as (engine, execution):
            with pytest.raises(InvalidInput, match="tone"):
                await execution.approve("release", form={})
            with pytest.raises(NotFound):
                await engine.approve("nobody", "release")
            with pytest.raises(NotFound):
                await execution.reject("relase")

    asyncio.run(main())


def test_decisions_can_be_given_in_tests() -> None:
    flow = Workflow("letter")
    flow.approval("release", "Send?", config={"form": FORM, "expires_seconds": 3600})
    approved = {"decision": "approved", "form": {"tone": "warm"}, "by": "Ada"}
    run = testing.run(flow, decisions={"release": approved})
    assert run.result.nodes["release"]["output"]["form"] == {"tone": "warm"}
    assert run.seconds < 60
    expired = testing.run(flow)
    assert expired.result.nodes["release"]["output"]["decision"] == "expired"
