"""Live events down to a depth: items of maps as counts, or one item alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import aiohttp
import pytest

from penstock import Engine
from penstock.client.blocking import SyncClient
from tests.api.caller import Caller
from tests.api.event_server import Events
from tests.api.gates import GatedService, gated_service

INNER = {"id": "inner", "for_each": "{{ page.parts }}", "handler": "noop"}
BODY = [{"id": "first", "handler": "noop"}, {**INNER, "depends_on": ["first"]}]
PAGES: list[dict[str, Any]] = [{"parts": [1, 2]}, {"parts": []}, {"parts": [3]}]
NESTED = {
    "name": "nested",
    "nodes": [
        {"id": "list", "handler": "noop"},
        {"id": "each", "for_each": PAGES, "as": "page", "nodes": BODY, "depends_on": ["list"]},
        {"id": "loop", "handler": "noop", "repeat": {"until": "round == 3", "max_rounds": 5}},
    ],
}
ALL_DONE = {"open": 0, "failed": 0, "skipped": 0, "cancelled": 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("item_events")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def events(api: Caller, execution_id: str, **query: Any) -> list[dict[str, Any]]:
    with SyncClient(api.address) as client:
        return list(client.execution(execution_id).events(**query))


def split(received: list[dict[str, Any]]) -> tuple[set[str | None], dict[str, Any]]:
    """The nodes with transitions, and the last counts of each map or loop."""
    nodes = {event["node_id"] for event in received if "seq" in event}
    return nodes, {event["node_id"]: event["items"] for event in received if "items" in event}


def test_with_a_depth_of_0_items_come_as_counts(api: Caller) -> None:
    execution_id = api.start(NESTED)
    live = events(api, execution_id, depth=0)
    nodes, counts = split(live)
    assert nodes == {None, "list", "each", "loop"}
    assert counts == {
        "each": {"total": 3, "completed": 3, **ALL_DONE},
        "loop": {"total": 3, "completed": 3, **ALL_DONE},
    }
    # the same of one that has ended, from the store, with everything before the first line left out
    whole = events(api, execution_id)
    assert split(events(api, execution_id, depth=0)) == (nodes, counts)
    last = whole[-1]["seq"]
    late = events(api, execution_id, depth=0, after=last - 1)
    assert split(late) == ({None}, counts)
    assert len(live) < len(whole)


def test_a_depth_says_how_many_maps_deep(api: Caller) -> None:
    execution_id = api.start(NESTED)
    api.until_state(execution_id, "COMPLETED")
    nodes, counts = split(events(api, execution_id, depth=1))
    assert {"each[0]", "each[1].first", "each[2].inner", "loop[2]"} <= nodes
    assert "each[0].inner[0]" not in nodes
    assert [counts[f"each[{index}].inner"]["completed"] for index in range(3)] == [2, 0, 1]
    assert set(counts) == {f"each[{index}].inner" for index in range(3)}


def test_one_item_may_be_followed_alone(api: Caller) -> None:
    execution_id = api.start(NESTED)
    api.until_state(execution_id, "COMPLETED")
    item = "each[0]"
    nodes, counts = split(events(api, execution_id, under=item))
    inside = {"each[0].first", "each[0].inner", "each[0].inner[0]", "each[0].inner[1]"}
    assert (nodes, counts) == ({None, item, *inside}, {})
    nodes, counts = split(events(api, execution_id, under=item, depth=0))
    assert nodes == {None, item, "each[0].first", "each[0].inner"}
    assert counts["each[0].inner"]["completed"] == 2
    nodes, counts = split(events(api, execution_id, under="each", depth=0))
    assert (nodes, set(counts)) == ({None, "each"}, {"each"})
    assert api.get(f"/executions/{execution_id}/events?under=each%5B0%5D.x").status == 404
    assert api.get(f"/executions/{execution_id}/events?depth=-1").status == 422


def test_counts_come_at_most_twice_a_second_and_say_what_is_open(server: GatedService) -> None:
    api = server.api
    each = {"id": "each", "for_each": list(range(300)), "handler": "noop"}
    held = {"id": "held", "for_each": [1, 2], "handler": "gate", "config": {"gate": "held"}}
    document = {"name": "many", "nodes": [each, held]}
    execution_id = api.start(document)

    async def main() -> list[dict[str, Any]]:
        received: list[dict[str, Any]] = []
        url = f"{api.address}/api/v1/executions/{execution_id}/events?depth=0"
        loop = asyncio.get_running_loop()
        times: dict[str, list[float]] = {}
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            async for event in Events(aiter(response.content)):
                received.append(event)
                if event["event"] == "items":
                    items = event["data"]["items"]
                    times.setdefault(event["data"]["node_id"], []).append(loop.time())
                    if event["data"]["node_id"] == "held" and items["open"] == 2:
                        server.gates.open("held")
        for moments in times.values():
            gaps = [later - before for before, later in pairwise(moments)]
            # the last one comes with the end of the map
            assert all(gap > 0.3 for gap in gaps[:-1])
        return received

    received = asyncio.run(asyncio.wait_for(main(), 60))
    counts = [event["data"] for event in received if event["event"] == "items"]
    assert any(line["items"]["open"] == 2 for line in counts if line["node_id"] == "held")
    assert counts[-1]["items"]["open"] == 0
    assert len(received) < 60


def test_an_engine_gives_the_same_events() -> None:
    async def main() -> list[dict[str, Any]]:
        async with Engine("memory://") as engine:
            execution = await engine.start(NESTED)
            return [event async for event in execution.events(depth=0)]

    nodes, counts = split(asyncio.run(main()))
    assert nodes == {None, "list", "each", "loop"}
    assert [counts[name]["completed"] for name in ("each", "loop")] == [3, 3]
