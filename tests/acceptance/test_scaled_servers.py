"""Redis and PostgreSQL fail under real orchestrators, workers and APIs: nothing that was accepted is lost (G1)."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from penstock.local.server import Server
from penstock.stores.postgres.migrating import migrate
from tests.acceptance import works
from tests.acceptance.outside import (
    Caller,
    Effort,
    active,
    begin,
    caller,
    complaints,
    configure,
    flush,
    say,
    submit_mixed,
    tasks,
    total,
    unfinished,
    wrong_attempts,
)
from tests.acceptance.plant import PARTITIONS, Client, Plant, plant
from tests.acceptance.plant_judge import Verdict, judge
from tests.servers import postgres_server
from tests.waiting import until

OUTAGE_SECONDS = 2.0
BUSY_SHARE = 0.5
"""Of a core: a role that waits for a server should be far below, one in a loop is far above."""
PAUSED = 30
STOPPED, KILLED = "stopped", "killed"
KEPT, EMPTIED, OLDER = "kept", "emptied", "older"
REPLICA, ALONE = "a replica", "without its replicas"


class Scene(NamedTuple):
    plant: Plant
    address: str
    """Of the API."""
    client: Client
    caller: Caller


def play(opened: AbstractContextManager[Plant], act: Callable[[Scene], Awaitable[None]]) -> None:
    with opened as it:
        (api,) = begin(it, apis=1)

        async def main() -> None:
            async with it.client() as client, caller() as calls:
                await act(Scene(it, api.ready(), client, calls))

        asyncio.run(main())


def wide(width: int) -> dict[str, Any]:
    """Tasks of a queue that nobody serves yet."""
    nodes = [works.node(f"n{i}", (), "noop", queue=f"later-{width}") for i in range(width)]
    return works.document(f"wide-{width}", *nodes)


def pausing(word: str) -> dict[str, Any]:
    """A node that is done soon, one that runs until the test says this, and one that is decided after it."""
    pauses = works.node("p", "o", "work_pause", config={"until": word})
    return works.document(word, works.node("o"), pauses, works.node("q", "p"))


def paused(it: Plant, event: str, ids: Collection[str]) -> int:
    """How many of the nodes `p` have begun, or are done."""
    return sum(call.node == "p" and call.event == event and call.execution_id in ids for call in it.calls())


async def pause(scene: Scene, word: str) -> list[str]:
    """Executions that run until they hear the word."""
    ids = await scene.client.submit(pausing(word), PAUSED)
    await until(lambda: paused(scene.plant, "begun", ids) == PAUSED, "all of them run")
    return ids


def take_away(server: Server, how: str) -> None:
    if how == KILLED:
        server.kill()
    else:
        server.stop()


async def everything_is_kept(scene: Scene, *, lossy: bool = False) -> Verdict:
    """All that was accepted completes, with one call of each attempt unless Redis was `lossy`, and no attempt more."""
    accepted = {**scene.client.accepted, **scene.caller.accepted}
    await scene.client.until_ended(*accepted)
    verdict = judge(scene.plant, accepted, [works.diamond()], lossy=lossy).assert_kept()
    assert verdict.states().keys() == {"COMPLETED"}
    assert wrong_attempts(verdict, accepted) == []
    assert complaints(scene.plant) == []
    return verdict


def test_a_flushall_in_mid_run_loses_nothing_and_costs_no_attempt():
    async def act(scene: Scene) -> None:
        it = scene.plant
        await submit_mixed(scene.client, 80)
        await until(lambda: len(it.calls()) > 1000, "it is in the middle")
        left = unfinished(it)
        flush(it)
        await everything_is_kept(scene, lossy=True)
        rebuilt = await total(it, "rebuilt_total")
        say(f"{left} of {len(scene.client.accepted)} executions unfinished at the FLUSHALL, {rebuilt:g} built again")
        assert left >= rebuilt > 100

    play(plant(), act)


def test_what_was_checkpointed_is_rebuilt_in_seconds_and_not_run_again():
    async def act(scene: Scene) -> None:
        it, small, large = scene.plant, 1_000 - PAUSED, 9_000
        ids = await pause(scene, "go")
        for width in (small, large):
            await scene.client.submit(wide(width))
        await until(lambda: tasks(it) == 10_000, "all tasks are handed out")
        await until(lambda: checkpointed(it) == len(scene.client.accepted), "all is checkpointed", seconds=40)
        say(f"10,000 active nodes are in Redis again {await rebuilding(it, 10_000):.2f} s after the FLUSHALL")
        it.start("worker", "--queues", f"later-{large}")
        await until(lambda: unfinished(it) == PAUSED + 1, "the large one is archived", seconds=40)
        say(f"1,000 active nodes are in Redis again {await rebuilding(it, 1_000):.2f} s after the FLUSHALL")
        assert await total(it, "rebuilt_total") == 2 * PAUSED + 3
        it.release("go")
        it.start("worker", "--queues", f"later-{small}")
        verdict = await everything_is_kept(scene, lossy=True)
        assert verdict.reasons()["rebuilt"] >= PAUSED
        assert Counter(call.execution_id for call in it.calls() if call.node == "o") == Counter(ids)

    play(plant(), act)


def checkpointed(it: Plant) -> int:
    """Executions of which PostgreSQL has a copy in which everything is as far as it goes."""
    # what pauses has begun, and has a node that was queued and is completed, and one that was queued and runs
    statement = """
        SELECT count(*) FROM executions JOIN archives USING (n)
        WHERE executions.revision > CASE workflow WHEN 'go' THEN 4 ELSE split_part(workflow, '-', 2)::int END
    """
    with it.connect() as connection:
        return int(connection.execute(statement).fetchall()[0][0])


async def rebuilding(it: Plant, count: int) -> float:
    flush(it)
    since = time.monotonic()
    assert tasks(it) < count
    await until(lambda: tasks(it) == count, "all tasks are back")
    return time.monotonic() - since


@pytest.mark.parametrize(
    ("how", "data", "append_only"),
    [
        (STOPPED, KEPT, "everysec"),
        (KILLED, KEPT, "everysec"),
        (KILLED, KEPT, "always"),
        (KILLED, EMPTIED, "everysec"),
        (KILLED, OLDER, "everysec"),
    ],
)
def test_redis_goes_away_and_comes_back(how, data, append_only):
    async def act(scene: Scene) -> None:
        it = scene.plant
        if data == OLDER:
            await keep_a_copy(scene)
        ids = await pause(scene, "go")
        await submit_mixed(scene.client, 10)
        take_away(it.redis, how)
        await finish_meanwhile(scene, ids, "go")
        assert not it.redis.running
        replace_data(it, data)
        it.redis.start()
        await scene.caller.until_accepted(scene.address, works.diamond())
        await everything_is_kept(scene, lossy=data != KEPT)
        rebuilt = await total(it, "rebuilt_total")
        say(f"Redis was {how}, its data {data}: {rebuilt:g} executions built again")
        assert (rebuilt > 0) == (data != KEPT)

    play(plant(append_only=append_only), act)


async def keep_a_copy(scene: Scene) -> None:
    """Of Redis's data, in the middle of what is over soon after."""
    await submit_mixed(scene.client, 10)
    await until(lambda: len(scene.plant.calls()) > 50, "it is in the middle")
    assert unfinished(scene.plant) > 0
    shutil.copytree(folder(scene.plant), scene.plant.folder / OLDER)
    await scene.client.until_ended()


def folder(it: Plant) -> Path:
    return it.redis.folder / "appendonlydir"


def replace_data(it: Plant, data: str) -> None:
    if data != KEPT:
        shutil.rmtree(folder(it))
    if data == OLDER:
        shutil.copytree(it.folder / OLDER, folder(it))


async def refused_meanwhile(scene: Scene) -> Any:
    """While a server is away: what is new is told to come again."""
    refusal = await scene.caller.until_refused(scene.address, works.diamond())
    assert int(refusal.headers["Retry-After"]) >= 1
    assert refusal.body["code"] == "unavailable"
    return refusal


async def finish_meanwhile(scene: Scene, ids: list[str], word: str) -> None:
    """While Redis is away: handlers finish, what is new is refused, and nobody is busy with waiting."""
    it, calls = scene.plant, scene.caller
    effort = Effort(it.running())
    refusal = await refused_meanwhile(scene)
    it.release(word)
    await until(lambda: paused(it, "done", ids) == PAUSED, "they have finished")
    shares = await effort.until_lasted(OUTAGE_SECONDS)
    say(f"refused: {refusal.body['detail']}\nshares of a core meanwhile: {shares}")
    assert max(shares.values()) < BUSY_SHARE
    assert (await calls.get(f"{scene.address}/health/live")).status == 200
    assert (await calls.order(scene.address, works.diamond())).status == 503


def test_a_full_redis_refuses_what_is_new_and_lets_what_runs_finish():
    async def act(scene: Scene) -> None:
        it, calls = scene.plant, scene.caller
        await pause(scene, "go")
        await submit_mixed(scene.client, 10)
        configure(it, maxmemory="1")
        with it.connect_redis() as link, pytest.raises(redis.exceptions.OutOfMemoryError):
            link.set("any", "thing")
        await calls.until_closed(scene.address)
        refusal = await calls.order(scene.address, works.diamond())
        assert (refusal.status, int(refusal.headers["Retry-After"]) >= 1) == (503, True)
        assert "out of memory" in refusal.body["detail"]
        it.release("go")
        await scene.client.until_ended()
        assert (await calls.order(scene.address, works.diamond())).status == 503
        configure(it, maxmemory="0")
        await calls.until_accepted(scene.address, works.diamond())
        await everything_is_kept(scene)

    play(plant(), act)


def test_a_redis_that_takes_no_writes_is_waited_for():
    async def act(scene: Scene) -> None:
        it = scene.plant
        for how in (REPLICA, ALONE):
            ids = await pause(scene, how)
            await submit_mixed(scene.client, 10)
            refuse_writes(it, how)
            with it.connect_redis() as link, pytest.raises(redis.exceptions.ResponseError):
                link.set("any", "thing")
            await finish_meanwhile(scene, ids, how)
            assert unfinished(it) >= PAUSED
            take_writes(it)
            await scene.caller.until_accepted(scene.address, works.diamond())
            await everything_is_kept(scene)

    play(plant(), act)


def refuse_writes(it: Plant, how: str) -> None:
    if how == REPLICA:
        with it.connect_redis() as link:
            link.replicaof("127.0.0.1", "1")  # nobody is there
    else:
        configure(it, min_replicas_to_write="1")


def take_writes(it: Plant) -> None:
    with it.connect_redis() as link:
        link.replicaof("NO", "ONE")
    configure(it, min_replicas_to_write="0")


@contextmanager
def durable_plant() -> Iterator[Plant]:
    """Its PostgreSQL may be killed: what it has answered is on the disk."""
    with postgres_server(fsync=True) as server, plant() as it:
        migrate(server.url, PARTITIONS)
        it.database, it._postgres = server.url, server
        yield it


def test_what_runs_goes_on_without_postgresql_and_is_archived_later():
    async def act(scene: Scene) -> None:
        calls = scene.caller
        ordering = asyncio.create_task(calls.order_for_ever(scene.address, works.diamond()))
        for how in (STOPPED, KILLED):
            ids = await pause(scene, how)
            before = len(calls.accepted)
            await until(lambda: len(calls.accepted) > before + 5, "there are orders under way")  # noqa: B023
            take_away(scene.plant.postgres, how)
            await go_on_meanwhile(scene, ids, how)
            scene.plant.postgres.start()
            await calls.until_accepted(scene.address, works.diamond())
        ordering.cancel()
        await asyncio.gather(ordering, return_exceptions=True)
        say(f"{len(calls.accepted)} orders were accepted, {calls.refused} refused")
        await everything_is_kept(scene)

    play(durable_plant(), act)


async def go_on_meanwhile(scene: Scene, ids: list[str], word: str) -> None:
    """While PostgreSQL is away: what runs completes in Redis, and what is new is refused."""
    it, calls = scene.plant, scene.caller
    effort = Effort(it.running())
    refusal = await refused_meanwhile(scene)
    it.release(word)
    await until(lambda: active(it).isdisjoint(ids), "they complete without PostgreSQL")
    shares = await effort.until_lasted(OUTAGE_SECONDS)
    say(f"refused: {refusal.body['detail']}\nshares of a core meanwhile: {shares}")
    assert max(shares.values()) < BUSY_SHARE
    assert (await calls.get(f"{scene.address}/health/live")).status == 200
    assert not it.postgres.running
