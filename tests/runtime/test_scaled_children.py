"""Workflows that run other workflows, on Redis and PostgreSQL, over two partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import redis.asyncio

from penstock.config import Settings
from penstock.engine.commands import ControlChild, ExecutionRecord, Send
from penstock.engine.events import ChildEnded
from penstock.orchestrator.children import Relay
from penstock.service import Service
from penstock.service.submissions import StartRequest
from penstock.stores.base import Stored, partition_of
from penstock.stores.records import Search
from tests.runtime.test_scaled_waiting import on_redis
from tests.waiting import until

CHILD: dict[str, Any] = {
    "name": "billing",
    "nodes": [
        {"id": "go", "handler": "signal", "config": {"name": "go"}},
        {"id": "pay", "handler": "echo", "depends_on": ["go"], "config": {"paid": "{{ input.n }}"}},
    ],
}
QUICK_CHILD: dict[str, Any] = {
    "name": "billing",
    "nodes": [{"id": "pay", "handler": "echo", "config": {"paid": "{{ input.n }}"}}],
}


def parent(count: int) -> dict[str, Any]:
    config = {"workflow": "billing", "input": {"n": "{{ item }}"}}
    each = {
        "id": "each",
        "for_each": list(range(count)),
        "handler": "workflow",
        "config": config,
        "on_item_failure": "continue",
    }
    return {"name": "order", "nodes": [each]}


async def start(service: Service, document: dict[str, Any]) -> str:
    request = StartRequest(workflow=document)
    return (await service.submissions.submit(request)).execution_id


async def ended(service: Service, execution_id: str) -> Stored:
    end = await service.executions.end(execution_id, 60)
    assert end is not None, await service.executions.stored(execution_id)
    return await service.executions.stored(execution_id)


async def children(service: Service) -> list[ExecutionRecord]:
    rows = await service.executions.search(Search(workflow="billing", limit=500))
    stored = [await service.executions.stored(row.execution_id) for row in rows]
    return [one.record for one in stored]


async def until_children(service: Service, count: int) -> Sequence[ExecutionRecord]:
    found: list[ExecutionRecord] = []

    async def are_there() -> bool:
        found[:] = await children(service)
        return len(found) == count and all(record.state == "RUNNING" for record in found)

    await until(are_there)
    return found


def test_children_of_other_partitions_end_and_their_parent_hears_of_each() -> None:
    async def scenario(service: Service, _settings: Settings) -> None:
        await service.workflows.put(QUICK_CHILD)
        stored = await ended(service, await start(service, parent(20)))
        assert stored.record.state == "COMPLETED"
        outputs = [stored.outputs[f"each[{n}]"] for n in range(20)]
        assert outputs == [b'{"pay":{"paid":%d}}' % n for n in range(20)]
        records = await children(service)
        assert len(records) == 20
        assert {partition_of(record.execution_id, 2) for record in records} == {0, 1}

    on_redis(scenario)


def test_a_cancel_reaches_the_children() -> None:
    async def scenario(service: Service, _settings: Settings) -> None:
        await service.workflows.put(CHILD)
        execution_id = await start(service, parent(6))
        await until_children(service, 6)
        await service.executions.request_control(execution_id, "cancel")
        assert (await ended(service, execution_id)).record.state == "CANCELLED"

        async def are_cancelled() -> bool:
            return {record.state for record in await children(service)} == {"CANCELLED"}

        await until(are_cancelled)

    on_redis(scenario)


def test_parent_and_children_survive_the_loss_of_all_data_in_redis() -> None:
    async def scenario(service: Service, settings: Settings) -> None:
        await service.workflows.put(CHILD)
        execution_id = await start(service, parent(6))
        before = {record.execution_id for record in await until_children(service, 6)}
        client = redis.asyncio.Redis.from_url(settings.store)
        await client.flushall()
        await client.aclose()
        await until_children(service, 6)
        for child in before:
            await service.signals.send(child, "go", None)
        stored = await ended(service, execution_id)
        assert stored.record.state == "COMPLETED"
        after = {record.execution_id for record in await children(service)}
        assert after == before, "the same children, and no others"

    on_redis(scenario)


def test_an_end_that_nobody_was_told_of_is_found_by_looking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell = Relay.tell
    lost: list[ChildEnded] = []

    async def lose_the_first(relay: Relay, ends: Sequence[ChildEnded]) -> None:
        if lost:
            await tell(relay, ends)
        else:
            lost.extend(ends)

    monkeypatch.setattr(Relay, "tell", lose_the_first)

    async def scenario(service: Service, _settings: Settings) -> None:
        await service.workflows.put(QUICK_CHILD)
        stored = await ended(service, await start(service, parent(3)))
        assert stored.record.state == "COMPLETED"
        assert lost

    on_redis(scenario, reconcile_seconds=0.3)


def test_a_child_whose_cancel_was_lost_is_cancelled_when_its_parent_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deliver = Relay.deliver
    lost: list[Send] = []

    async def lose_the_first(relay: Relay, sends: Sequence[Send]) -> None:
        cancels = [send for send in sends if isinstance(send, ControlChild)]
        if cancels and not lost:
            lost.extend(cancels)
        else:
            await deliver(relay, sends)

    monkeypatch.setattr(Relay, "deliver", lose_the_first)

    async def scenario(service: Service, _settings: Settings) -> None:
        await service.workflows.put(CHILD)
        execution_id = await start(service, parent(1))
        await until_children(service, 1)
        await service.executions.request_control(execution_id, "cancel")
        await ended(service, execution_id)

        async def is_cancelled() -> bool:
            return {record.state for record in await children(service)} == {"CANCELLED"}

        await until(is_cancelled)
        assert lost

    on_redis(scenario, reconcile_seconds=0.3)
