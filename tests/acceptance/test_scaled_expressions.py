"""Endless expressions against real orchestrators and workers (D1).

No other execution is held up by them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import psutil

from penstock.service.submissions import StartRequest
from tests.acceptance import works
from tests.acceptance.plant import Client, Plant, Role, open_plant
from tests.hostile.expressions import LONG_TEXT, NESTED_COUNTS
from tests.waiting import until

SECONDS = "2"
MEMORY_BYTES_MAX = 1024 * 1024 * 1024


def _hostile(name: str) -> dict[str, Any]:
    return works.document(
        name, works.node("a", (), "work_note", condition=f"input.s.matches('{NESTED_COUNTS}')")
    )


def _transforming(name: str) -> dict[str, Any]:
    config = {"expression": f"s.matches('{NESTED_COUNTS}')", "variables": {"s": "{{ input.s }}"}}
    return works.document(name, works.node("a", (), "transform", config=config))


async def _submit(client: Client, document: dict[str, Any]) -> str:
    accepted = await client.service.submissions.submit(
        StartRequest(workflow=document, input={"s": LONG_TEXT})
    )
    client.accepted[accepted.execution_id] = document
    return accepted.execution_id


def _sandboxes(role: Role) -> list[psutil.Process]:
    process = psutil.Process(role.pid)
    return [
        child
        for child in process.children(recursive=True)
        if "penstock.sandbox.child" in " ".join(child.cmdline())
    ]


async def _error(client: Client, execution_id: str) -> str:
    stored = await client.service.executions.stored(execution_id)
    assert stored.record.state == "FAILED"
    assert stored.record.error is not None
    return stored.record.error.message


async def _story(plant: Plant) -> None:
    plant.start("orchestrator", count=2, ready=False, EXPRESSION_SECONDS=SECONDS)
    plant.start("worker", ready=False, EXPRESSION_SECONDS=SECONDS)
    for role in plant.roles:
        role.ready()
    await plant.until_owned(2)
    async with plant.client() as client:
        before = plant.owners()
        ids = [await _submit(client, _hostile(f"hostile-{i}")) for i in range(3)]
        ids.append(await _submit(client, _transforming("transforming")))
        orchestrators = plant.running("orchestrator")
        busy = await until(lambda: next((role for role in orchestrators if _sandboxes(role)), None))
        # one that waits for nothing is done long before the hostile ones are
        await client.until_ended(*await client.submit(works.chain(3, "work_note")), seconds=10)
        assert plant.owners() == before, "no partition has wandered"
        for role in plant.running():
            assert psutil.Process(role.pid).memory_info().rss < MEMORY_BYTES_MAX
        orphans = _sandboxes(busy)
        busy.kill()
        await client.until_ended()
        messages = [await _error(client, name) for name in ids]
        assert all("it took more than 2 s of computing time" in message for message in messages), (
            messages
        )
        _, alive = await asyncio.to_thread(psutil.wait_procs, orphans, 20)
        assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_endless_expressions_fail_their_nodes_also_if_their_owner_dies_meanwhile():
    with open_plant() as plant:
        asyncio.run(_story(plant))
