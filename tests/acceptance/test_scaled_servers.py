"""Redis fails under real orchestrators, workers and APIs.

Nothing that was accepted is lost (G1).
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.acceptance import works
from tests.acceptance.outside import (
    Effort,
    configure,
    flush,
    say,
    submit_mixed,
    tasks,
    total,
    unfinished,
)
from tests.acceptance.plant import SOON_COPIED, Plant, open_plant
from tests.acceptance.scenes import (
    KILLED,
    PAUSED,
    SHORT_SECONDS,
    STOPPED,
    Scene,
    assert_all_guarantees,
    idle_meanwhile,
    pause,
    paused,
    play,
    refused_meanwhile,
    take_away,
    taken_again,
)
from tests.faults.table import Fault
from tests.waiting import until

REDIS_SECONDS = 10
"""How long it is away at full size."""
RETAINED, EMPTIED, OLDER = "kept", "emptied", "older"
REPLICA, ALONE = "a replica", "without its replicas"


def wide(width: int) -> dict[str, Any]:
    """Tasks of a queue that nobody serves yet."""
    nodes = [works.node(f"n{i}", (), "noop", queue=f"later-{width}") for i in range(width)]
    return works.document(f"wide-{width}", *nodes)


@pytest.mark.timeout(240)
@pytest.mark.fault("Redis", "FLUSHALL in mid-run")
def test_a_flushall_in_mid_run_loses_nothing_and_costs_no_attempt(fault: Fault):
    async def act(scene: Scene) -> None:
        plant = scene.plant
        await submit_mixed(scene.client, fault.size(short=80, full=200))
        await until(lambda: len(plant.calls()) > 1000, "it is in the middle")
        left = unfinished(plant)
        flush(plant)
        await assert_all_guarantees(scene, lossy=True)
        rebuilt = await total(plant, "rebuilt_total")
        say(
            f"{left} of {len(scene.client.accepted)} executions unfinished at the FLUSHALL, "
            f"{rebuilt:g} built again"
        )
        assert left >= rebuilt > 100
        fault.shows(unfinished_at_the_loss=left, built_again=int(rebuilt))

    play(fault, open_plant(), act)


@pytest.mark.timeout(240)
@pytest.mark.fault("Redis", "FLUSHALL with 10,000 active nodes, all of them checkpointed")
def test_what_was_checkpointed_is_rebuilt_in_seconds_and_not_run_again(fault: Fault):
    few, many = fault.size(300, 1_000), fault.size(3_000, 10_000)

    async def act(scene: Scene) -> None:
        plant = scene.plant
        small = few - PAUSED
        large = many - few
        ids = await pause(scene, "go")
        for width in (small, large):
            await scene.client.submit(wide(width))
        await until(lambda: tasks(plant) == many, "all tasks are handed out")
        await until(
            lambda: checkpointed(plant) == len(scene.client.accepted),
            "all is checkpointed",
            seconds=40,
        )
        seconds = await rebuilding(plant, many)
        say(f"{many:,} active nodes are in Redis again {seconds:.2f} s after the FLUSHALL")
        plant.start("worker", "--queues", f"later-{large}")
        await until(
            lambda: unfinished(plant) == PAUSED + 1, "the large one is archived", seconds=40
        )
        say(
            f"{few:,} active nodes are in Redis again {await rebuilding(plant, few):.2f} s after "
            "the FLUSHALL"
        )
        assert await total(plant, "rebuilt_total") == 2 * PAUSED + 3
        plant.release("go")
        plant.start("worker", "--queues", f"later-{small}")
        verdict = await assert_all_guarantees(scene, lossy=True)
        assert verdict.reasons()["rebuilt"] >= PAUSED
        assert Counter(call.execution_id for call in plant.calls() if call.node == "o") == Counter(
            ids
        )
        fault.shows(active_nodes=many, rebuilt_in_seconds=seconds, run_again=0)

    play(fault, open_plant(environ={} if fault.is_full else SOON_COPIED), act)


def checkpointed(plant: Plant) -> int:
    """Executions of which PostgreSQL has a copy in which everything is as far as it goes."""
    # what pauses has begun, and has a node that was queued and is completed, and one that was
    # queued and runs
    statement = """
        SELECT count(DISTINCT n) FROM executions JOIN segments USING (n)
        WHERE executions.revision >
            CASE workflow WHEN 'go' THEN 4 ELSE split_part(workflow, '-', 2)::int END
    """
    with plant.connect() as connection:
        return int(connection.execute(statement).fetchall()[0][0])


async def rebuilding(plant: Plant, count: int) -> float:
    flush(plant)
    since = time.monotonic()
    assert tasks(plant) < count
    await until(lambda: tasks(plant) == count, "all tasks are back")
    return time.monotonic() - since


def away(done: str, *values: str) -> Any:
    return pytest.param(*values, marks=pytest.mark.fault("Redis", done), id="-".join(values))


@pytest.mark.parametrize(
    ("how", "data", "append_only"),
    [
        away("a restart", STOPPED, RETAINED, "everysec"),
        away("kill -9 with AOF everysec", KILLED, RETAINED, "everysec"),
        away("kill -9 with AOF always", KILLED, RETAINED, "always"),
        away("kill -9, and its data directory removed", KILLED, EMPTIED, "everysec"),
        away("kill -9, and an older copy in place of its data", KILLED, OLDER, "everysec"),
    ],
)
@pytest.mark.timeout(240)
def test_redis_goes_away_and_comes_back(fault: Fault, how, data, append_only):
    async def act(scene: Scene) -> None:
        plant = scene.plant
        if data == OLDER:
            await copy_data(scene)
        ids = await pause(scene, "go")
        await submit_mixed(scene.client, 10)
        take_away(plant.redis, how)
        await finish_meanwhile(scene, ids, "go")
        assert not plant.redis.running
        replace_data(plant, data)
        await taken_again(scene, plant.redis.start)
        await assert_all_guarantees(scene, lossy=data != RETAINED)
        rebuilt = await total(plant, "rebuilt_total")
        say(f"Redis was {how}, its data {data}: {rebuilt:g} executions built again")
        assert (rebuilt > 0) == (data != RETAINED)

    play(fault, open_plant(append_only=append_only), act)


async def copy_data(scene: Scene) -> None:
    """Of Redis's data, in the middle of what is over soon after."""
    await submit_mixed(scene.client, 10)
    await until(lambda: len(scene.plant.calls()) > 50, "it is in the middle")
    assert unfinished(scene.plant) > 0
    shutil.copytree(folder(scene.plant), scene.plant.folder / OLDER)
    await scene.client.until_ended()


def folder(plant: Plant) -> Path:
    return plant.redis.folder / "appendonlydir"


def replace_data(plant: Plant, data: str) -> None:
    if data != RETAINED:
        shutil.rmtree(folder(plant))
    if data == OLDER:
        shutil.copytree(plant.folder / OLDER, folder(plant))


async def finish_meanwhile(scene: Scene, ids: list[str], word: str) -> None:
    """While Redis is away: handlers finish, starts are refused, and no role is busy waiting."""
    plant, calls = scene.plant, scene.caller
    effort = Effort(plant.running())
    refusal = await refused_meanwhile(scene)
    plant.release(word)
    await until(lambda: paused(plant, "done", ids) == PAUSED, "they have finished")
    await idle_meanwhile(scene, effort, scene.fault.size(SHORT_SECONDS, REDIS_SECONDS))
    say(f"refused: {refusal.body['detail']}")
    assert (await calls.get(f"{scene.address}/health/live")).status == 200
    assert (await calls.order(scene.address, works.diamond())).status == 503


@pytest.mark.timeout(240)
@pytest.mark.fault("Redis", "out of memory")
def test_a_full_redis_refuses_what_is_new_and_lets_what_runs_finish(fault: Fault):
    async def act(scene: Scene) -> None:
        plant, calls = scene.plant, scene.caller
        await pause(scene, "go")
        # signals are refused as starts are
        await submit_mixed(scene.client, 10, with_waits=False)
        configure(plant, maxmemory="1")
        with plant.connect_redis() as link, pytest.raises(redis.exceptions.OutOfMemoryError):
            link.set("any", "thing")
        await calls.until_closed(scene.address)
        refusal = await calls.order(scene.address, works.diamond())
        assert (refusal.status, int(refusal.headers["Retry-After"]) >= 1) == (503, True)
        assert "takes no writes now" in refusal.body["detail"]
        plant.release("go")
        await scene.client.until_ended()
        await idle_meanwhile(scene, Effort(plant.running()), fault.size(1, REDIS_SECONDS))
        assert (await calls.order(scene.address, works.diamond())).status == 503
        await taken_again(scene, lambda: configure(plant, maxmemory="0"))
        await assert_all_guarantees(scene)

    play(fault, open_plant(), act)


@pytest.mark.timeout(240)
@pytest.mark.fault("Redis", "read-only: a replica, then a master that misses its replicas")
def test_a_redis_that_takes_no_writes_is_waited_for(fault: Fault):
    async def act(scene: Scene) -> None:
        plant = scene.plant
        for how in (REPLICA, ALONE):
            ids = await pause(scene, how)
            await submit_mixed(scene.client, 10)
            refuse_writes(plant, how)
            with plant.connect_redis() as link, pytest.raises(redis.exceptions.ResponseError):
                link.set("any", "thing")
            await finish_meanwhile(scene, ids, how)
            assert unfinished(plant) >= PAUSED
            await taken_again(scene, lambda: take_writes(plant))
            await assert_all_guarantees(scene)

    play(fault, open_plant(), act)


def refuse_writes(plant: Plant, how: str) -> None:
    if how == REPLICA:
        with plant.connect_redis() as link:
            link.replicaof("127.0.0.1", "1")  # nobody is there
    else:
        configure(plant, min_replicas_to_write="1")


def take_writes(plant: Plant) -> None:
    with plant.connect_redis() as link:
        link.replicaof("NO", "ONE")
    configure(plant, min_replicas_to_write="0")
