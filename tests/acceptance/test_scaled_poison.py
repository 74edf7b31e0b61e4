"""Tasks that no worker can run, and data that cannot be read (G4, G5).

They stop no other execution, and end as a dead letter with a reason.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from penstock.stores.base import partition_of
from tests.acceptance import works
from tests.acceptance.plant import PARTITIONS, Client, Plant, open_plant
from tests.acceptance.plant_judge import judge
from tests.faults.table import Fault
from tests.waiting import until

ATTEMPTS = 2
TWICE = {**works.STEADY, "max_attempts": ATTEMPTS}
LATER = """
import penstock

@penstock.handler("work_later")
def later(config, ctx):
    return "at last"
"""


@pytest.mark.fault("poison", "an unknown handler, an undecodable task, results of a newer schema")
def test_what_no_worker_can_do_yet_waits_and_what_nobody_can_read_is_a_dead_letter(
    fault: Fault,
) -> None:
    async def main(plant: Plant) -> tuple[dict[str, Any], list[str]]:
        async with plant.client() as client:
            (waiting,) = await client.submit(works.single("waiting", "work_note", queue="nobody"))
            unknown, unheard = (
                works.single("unknown", "work_later"),
                works.single("unheard", "work_later"),
            )
            unheard["nodes"][0]["queue"] = "work_note"  # whose worker hasn't got the handler
            for document in (unknown, unheard):
                await client.service.workflows.put(document, allow_unknown_handlers=True)
            (later,) = await client.submit(unknown, name="unknown")
            (never,) = await client.submit(unheard, name="unheard")
            (mangled,) = await client.submit(works.single("mangled", "work_note", queue="mangled"))
            await _mangle(plant, mangled)
            (newer,) = await client.submit(
                works.single("newer", "work_note", queue="newer", retry=TWICE)
            )
            await _report_in_another_schema(plant, client, newer)
            await client.until_ended(never, newer, *await client.submit(works.diamond(), 10))
            assert {await client.state(name) for name in (waiting, later)} == {"RUNNING"}
            (plant.folder / "later.py").write_text(LATER, encoding="utf-8")
            plant.start(
                "worker", "--handlers", "later.py", "--queues", "nobody,work_later,mangled,newer"
            )
            await client.until_ended()
            return client.accepted, [never, mangled, newer]

    with open_plant() as plant:
        plant.start("orchestrator", NO_HANDLER_SECONDS="2")
        plant.start("worker")
        accepted, bad = asyncio.run(main(plant))
        verdict = judge(plant, accepted, slots=fault.is_full).assert_guarantees()
        assert verdict.states() == {"COMPLETED": 12, "FAILED": 3}
        dead_letters = {
            dead_letter.execution_id: dead_letter.attempts for dead_letter in verdict.dead_letters
        }
        assert dead_letters.keys() == set(bad)
        never, mangled, newer = (dead_letters[name] for name in bad)
        assert (never[-1].error.category, len(never)) == ("no_handler", 1)
        assert "work_later" in never[-1].error.message
        assert {failure.error.category for failure in (*mangled, *newer)} == {"schema"}
        assert [failure.attempt for failure in newer] == [1, 2]
        fault.shows(
            dead_letters=len(dead_letters),
            attempts_of_the_newer=len(newer),
            others_completed=12,
            waited_for_a_worker=2,
        )


async def _report_in_another_schema(plant: Plant, client: Client, execution_id: str) -> None:
    """Of each of its attempts, as a worker of a version to come would."""
    key = f"penstock:{{{partition_of(execution_id, PARTITIONS)}}}:inbox"
    for attempt in range(1, ATTEMPTS + 1):

        async def is_out(attempt: int = attempt) -> bool:
            run = (await client.service.executions.stored(execution_id)).runs.get("a")
            return run is not None and (run.state, run.attempt) == ("QUEUED", attempt)

        await until(is_out, f"attempt {attempt} is out")
        report = ["TaskSucceededTwice", execution_id, "a", 1, attempt, "worker-1", {"new": True}]
        with plant.connect_redis() as link:
            link.xadd(key, {"2": msgspec.msgpack.encode(report)}, id="1-*")


async def _mangle(plant: Plant, execution_id: str) -> None:
    """Its task, so that it can be read no more; and another that never was one."""
    key = f"penstock:{{{partition_of(execution_id, PARTITIONS)}}}:tasks:0:mangled"
    with plant.connect_redis() as link:
        await until(lambda: link.exists(key) and link.xlen(key), "its task is there")
        entries: Any = link.xrange(key)
        ((entry_id, fields),) = entries
        (field, data), *_ = fields.items()
        task = msgspec.msgpack.decode(data)
        task[4] = 7
        link.xdel(key, entry_id)
        link.xadd(key, {field: msgspec.msgpack.encode(task)})
        link.xadd(key, {field: b"\xff\x00nothing"})
