"""The ids of events over HTTP where the feed has several partitions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from penstock.service.live_events import LiveEvents
from tests.api.event_server import Served, connected, refusal, served
from tests.service.feed_partitions import FeedPartitions


def over_http(
    scenario: Callable[[FeedPartitions, Served], Awaitable[None]], **options: int
) -> None:
    async def main() -> None:
        partitions = FeedPartitions(3, random.Random(7), **options)
        async with served(LiveEvents(cast("Any", partitions))) as server:
            await scenario(partitions, server)

    asyncio.run(main())


def lines(events: list[dict[str, Any]]) -> dict[str, list[int]]:
    seqs_by_execution: dict[str, list[int]] = {}
    for event in events:
        seqs_by_execution.setdefault(event["data"]["execution_id"], []).append(event["data"]["seq"])
    return seqs_by_execution


def test_a_client_that_comes_back_with_any_id_gets_exactly_the_rest() -> None:
    async def scenario(partitions: FeedPartitions, server: Served) -> None:
        for partition in (0, 2, 1, 2):
            partitions.commit(partition, parts=2, lines=2)
        async with connected(server, "/events?after=0") as (_, events):
            whole = await events.take(16)
        assert lines(whole) == partitions.lines
        for count, event in enumerate(whole[:-1], start=1):
            async with connected(server, "/events", event["id"]) as (_, events):
                rest = await events.take(16 - count)
            assert (
                lines(sorted([*whole[:count], *rest], key=lambda item: item["data"]["seq"]))
                == partitions.lines
            )

    over_http(scenario)


@pytest.mark.parametrize(
    "last",
    ["17.0", "1-1", "1-1-1-1", "9-9-99999", "1.0-1.0-1", "1--1", "1-1-x", "-".join("1" * 300)],
)
def test_a_place_that_this_store_does_not_have_is_refused(last: str) -> None:
    async def scenario(partitions: FeedPartitions, server: Served) -> None:
        for partition in range(3):
            partitions.commit(partition)
        status, problem, _ = await refusal(server, "/events", last)
        assert (status, problem["code"]) == (422, "invalid_request")
        assert len(problem["detail"]) < 2000

    over_http(scenario)


def test_a_place_behind_which_something_is_gone_is_refused_with_what_to_do() -> None:
    async def scenario(partitions: FeedPartitions, server: Served) -> None:
        partitions.commit(1, lines=2)
        async with connected(server, "/events?after=0") as (_, events):
            [first] = await events.take(1)
        for _ in range(5):
            partitions.commit(1)
        status, problem, _ = await refusal(server, "/events", first["id"])
        assert (status, problem["code"]) == (422, "invalid_request")
        assert "isn't kept any more" in problem["detail"]
        assert "leave the id out" in problem["detail"]

    over_http(scenario, retained=3)
