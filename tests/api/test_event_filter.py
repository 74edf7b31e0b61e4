"""The events of executions alone, without those of their nodes.

For lists that show thousands of executions.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from penstock.api.events import encode, encode_bare
from penstock.engine.commands import Transition
from penstock.service.readers import Batch, batch_of
from penstock.stores.records import FeedEntry
from tests.api.event_server import Served, connected, refusal
from tests.api.test_events import over_http
from tests.service.chronicle import Chronicle
from tests.waiting import let_others_run, until

BARE = "/events?nodes=false"
HEARTBEAT_ID = re.compile(rb": still here\nid: (\S+)\n\n")


def told(events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    assert all(event["data"]["node_id"] is None for event in events)
    return [(event["data"]["execution_id"], event["data"]["seq"]) for event in events]


def test_only_the_changes_of_executions_come_with_the_ids_that_they_have_among_all() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a", "b")
        async with (
            connected(server, f"{BARE}&after=0") as (_, bare),
            connected(server, "/events?after=0") as (_, whole),
        ):
            await chronicle.turn("a", lines=3)
            await chronicle.commit("b", 5)
            await chronicle.turn("b", lines=1)
            await chronicle.finish("a")
            executions_only, everything = await bare.take(3), await whole.take(7 + 5 + 3 + 1)
        assert told(executions_only) == [("a", 4), ("b", 7), ("a", 8)]
        assert executions_only == [
            event for event in everything if event["data"]["node_id"] is None
        ]

    over_http(scenario)


def test_with_nodes_is_how_it_is_without_a_word() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.turn("a", lines=2)
        async with connected(server, "/events?after=0&nodes=true") as (_, events):
            assert [event["data"]["seq"] for event in await events.take(5)] == [1, 2, 3, 4, 5]
        assert (await refusal(server, "/events?nodes=perhaps"))[0] == 422

    over_http(scenario)


def test_a_client_goes_on_from_any_of_its_ids_without_a_gap_or_a_repeat() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a", "b", "c")
        for name in ("a", "b", "a", "c", "b"):
            await chronicle.turn(name, lines=2)
            await chronicle.commit("c", 3)
        async with connected(server, f"{BARE}&after=0") as (_, events):
            whole = await events.take(5)
        assert told(whole) == [("a", 3), ("b", 3), ("a", 8), ("c", 12), ("b", 8)]
        for number, event in enumerate(whole):
            async with connected(server, BARE, event["id"]) as (_, events):
                await chronicle.turn("a")
                assert (await events.take(5 - number))[:-1] == whole[number + 1 :]

    over_http(scenario)


def test_a_client_that_is_sent_nothing_for_long_has_heartbeats_with_a_place_to_go_on_from() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.turn("a")
        async with connected(server, f"{BARE}&after=0") as (response, events):
            assert told(await events.take(1)) == [("a", 1)]
            busy = asyncio.create_task(commit_for_ever(chronicle))
            text = b""
            while len(HEARTBEAT_ID.findall(text)) < 3:
                text += await response.content.readany()
            busy.cancel()
            await asyncio.gather(busy, return_exceptions=True)
        assert b"data" not in text
        event_id = HEARTBEAT_ID.findall(text)[-1].decode()
        await chronicle.finish("a")
        async with connected(server, BARE, event_id) as (_, events):
            (last,) = await events.take(1)
        assert last["data"]["to"] == "COMPLETED"
        async with connected(server, "/events", event_id) as (_, events):
            (following,) = await events.take(1)
        assert following["data"]["seq"] > 1, "what was left out before it isn't gone through again"

    over_http(scenario, heartbeat_seconds=0.02)


async def commit_for_ever(chronicle: Chronicle) -> None:
    while True:
        await chronicle.commit("a")
        await let_others_run()


def test_what_is_left_out_costs_a_client_nothing_on_the_wire() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        async with connected(server, BARE) as (response, _):
            await until(lambda: chronicle.live_events.streams == 1, "it listens")
            feeds = chronicle.executions.feeds
            for _ in range(50):
                await chronicle.commit("a", 5)
                before = chronicle.executions.feeds

                def was_read(before: int = before) -> bool:
                    return bool(chronicle.executions.feeds > before)

                await until(was_read, "it was read")
            assert chronicle.executions.feeds >= feeds + 50, "in batches of their own"
            await chronicle.finish("a")
            text = b""
            while b"COMPLETED" not in text:
                text += await response.content.readany()
        assert text.count(b"id: ") == 1
        assert b"still here" not in text

    over_http(scenario, heartbeat_seconds=60.0)


def a_batch() -> Batch:
    lines = [
        Transition(seq, 1.0, "" if seq == 2 else f"n{seq}", "PENDING", "RUNNING", 1)
        for seq in range(1, 5)
    ]
    return batch_of([FeedEntry(7, "a", lines)], (6,))


def test_a_batch_is_encoded_once_for_all_who_want_it_whole_and_once_for_all_others() -> None:
    batch = a_batch()
    whole, bare = encode(batch), encode_bare(batch)
    assert encode(batch) is whole
    assert encode_bare(batch) is bare
    assert (whole.count(b"event: "), bare.count(b"event: ")) == (4, 1)
    assert bare in whole
    assert bare.startswith(b"id: 7.1\n")
