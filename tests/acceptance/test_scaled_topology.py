"""Servers that come back changed.

Restored from an older copy, or silent behind an open connection.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import cast
from urllib.parse import urlsplit

import pytest
import redis

from penstock.local import PostgresServer, RedisServer
from penstock.stores.postgres.migrating import migrate
from tests.acceptance import works
from tests.acceptance.outside import active, begin, caller, complaints, is_built, say, total
from tests.acceptance.plant import END_SECONDS, PARTITIONS, SOON_COPIED, Client, Plant, open_plant
from tests.acceptance.plant_judge import judge
from tests.acceptance.scenes import (
    FULL_SECONDS,
    Scene,
    assert_all_guarantees,
    pause,
    paused,
    pausing,
    play,
    refused_meanwhile,
    taken_again,
)
from tests.faults.table import Fault
from tests.faults.tcp import TcpProxy
from tests.servers import postgres_server, redis_server
from tests.waiting import until, until_now

RUNNING, RUNNING_FULL = 20, 200
SHORT_SILENCE, SILENCE = 8, 30
"""Seconds."""
REFUSAL_SECONDS = 10.0
"""A call's own limit is four; the machine may be busy."""
GONE_ON_SECONDS = 20.0
"""Less than the thirty for which one call could wait for a silent server before."""


@contextmanager
def own_plant(environ: Mapping[str, str]) -> Iterator[Plant]:
    with postgres_server(fsync=True) as server, open_plant(environ=environ) as plant:
        migrate(server.url, PARTITIONS)
        plant.database, plant._postgres = server.url, server
        yield plant


def back_up(server: PostgresServer) -> None:
    """All files, as a file system's snapshot has them."""
    server.stop()
    _replace(server, "data", "data.older")
    server.start()


def put_back(server: PostgresServer) -> None:
    server.stop()
    _replace(server, "data.older", "data")
    server.start()


def _replace(server: PostgresServer, source: str, target: str) -> None:
    shutil.rmtree(server.folder / target, ignore_errors=True)
    shutil.copytree(server.folder / source, server.folder / target, copy_function=_copy)
    shutil.copystat(server.folder / source, server.folder / target)
    for path in [server.folder / source, *(server.folder / source).rglob("*")]:
        old_stat = path.stat()
        shutil.chown(
            server.folder / target / path.relative_to(server.folder / source),
            old_stat.st_uid,
            old_stat.st_gid,
        )


def _copy(source: str, target: str) -> str:
    return str(shutil.copy2(source, target))


@pytest.mark.timeout(240)
@pytest.mark.fault("topology", "PostgreSQL restored to an older copy that lacks running executions")
def test_what_runs_ends_in_a_postgresql_that_was_put_back_to_an_older_copy(fault: Fault):
    """Executions that run again in the older copy end too, and nothing stays RUNNING.

    They had ended and had been archived before the copy was restored.
    """

    async def act(scene: Scene) -> None:
        plant = scene.plant
        client = scene.client
        count = fault.size(RUNNING, RUNNING_FULL)
        older = await client.submit(pausing("older"), 3)
        await until(lambda: paused(plant, "begun", older) == 3, "all of them run")
        await until(lambda: copied(plant, older) == 3, "PostgreSQL has copies of them", seconds=30)
        await asyncio.to_thread(back_up, plant.postgres)
        plant.release("older")
        await client.until_ended(*older)
        document = pausing("newer")  # a version that the older copy doesn't have
        newer = await client.submit(document, count)
        await until(lambda: paused(plant, "begun", newer) == count, "all of them run")
        await asyncio.to_thread(put_back, plant.postgres)
        assert active(plant) >= set(newer)
        await scene.caller.until_accepted(scene.address, works.diamond())
        cancelled = newer[0]
        url = f"{scene.address}/api/v1/executions/{cancelled}/cancel"
        async with scene.caller.session.post(url, json={}) as answer:
            assert answer.status == 202, await answer.text()
        plant.release("newer")
        seconds = fault.size(short=int(END_SECONDS), full=FULL_SECONDS)
        await client.until_ended(*client.accepted, *scene.caller.accepted, seconds=seconds)
        assert active(plant) == set()
        accepted = {**client.accepted, **scene.caller.accepted}
        verdict = judge(plant, accepted, lossy=True).assert_guarantees()
        assert verdict.states() == {"COMPLETED": len(accepted) - 1, "CANCELLED": 1}
        rewritten = int(await total(plant, "rewritten_total"))
        went_back = int(await total(plant, "cold_store_went_back_total"))
        say(
            f"{rewritten} rows were written again; {went_back} partitions noticed that "
            "PostgreSQL had gone back"
        )
        assert 0 < rewritten <= count
        assert went_back > 0
        with plant.connect() as connection:
            ((version,),) = connection.execute(
                "SELECT count(*) FROM workflows WHERE name = 'newer'"
            ).fetchall()
        assert version == 1, "the version that they run is back too"
        assert not (unexpected_lines := complaints(plant)), unexpected_lines[0]
        fault.shows(
            accepted=len(accepted), missing=0, rewritten=rewritten, noticed_by_partitions=went_back
        )

    play(fault, own_plant({} if fault.is_full else SOON_COPIED), act)


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "topology",
    "PostgreSQL silent for 30 s behind open connections (half-open); submissions throughout",
)
def test_what_runs_goes_on_while_postgresql_is_silent_and_starts_are_refused_soon(fault: Fault):
    """The orchestrators' connections fall silent first, and starts still come in.

    Running executions mustn't wait behind them.
    """
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        migrate(server.url, PARTITIONS)
        proxy, proxy_of_api = (stack.enter_context(TcpProxy(server.url)) for _ in range(2))
        plant = stack.enter_context(open_plant())
        plant.database, plant._postgres = proxy.url, server
        begin(plant)
        (api,) = plant.start("api", DATABASE=proxy_of_api.url)

        async def act(scene: Scene) -> None:
            calls = scene.caller
            ids = await pause(scene, "silent")
            ordering = asyncio.create_task(calls.order_for_ever(scene.address, works.diamond()))
            await until(lambda: len(calls.accepted) > 5, "there are orders under way")
            proxy.is_silent = True
            begun, before = time.monotonic(), len(calls.accepted)
            await until(
                lambda: len(calls.accepted) > before + 5,
                "starts come in that orchestrators can't look up",
            )
            plant.release("silent")
            await until(lambda: active(plant).isdisjoint(ids), "they complete without PostgreSQL")
            went_on = time.monotonic() - begun
            proxy_of_api.is_silent = True
            refusal = await refused_meanwhile(scene)
            await until(
                lambda: time.monotonic() - begun >= fault.size(SHORT_SILENCE, SILENCE), seconds=120
            )
            asked_at = time.monotonic()
            await refused_meanwhile(scene)
            waited = time.monotonic() - asked_at
            say(
                f"refused after {waited:.2f} s: {refusal.body['detail']}; what ran was over "
                f"after {went_on:.2f} s"
            )
            assert went_on < GONE_ON_SECONDS
            assert waited < REFUSAL_SECONDS
            assert server.running
            proxy.is_silent = proxy_of_api.is_silent = False
            await taken_again(scene, lambda: None)
            ordering.cancel()
            await asyncio.gather(ordering, return_exceptions=True)
            await assert_all_guarantees(scene)
            fault.shows(
                ran_on_without_it=len(ids), over_after_seconds=went_on, refused_after_seconds=waited
            )

        async def main() -> None:
            async with plant.client() as client, caller() as calls:
                await act(Scene(plant, api.ready(), client, calls, fault))

        asyncio.run(main())


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "topology",
    "split brain: half of the roles stay on the old Redis master after its replica was promoted",
)
def test_a_split_brain_builds_each_partition_again_a_bounded_number_of_times(fault: Fault):
    """Both masters have granted a lease on every partition.

    Each owner sees the other's progress in PostgreSQL.
    """
    count, length = fault.size(16, 60), fault.size(16, 30)
    with ExitStack() as stack:
        plant = stack.enter_context(open_plant())
        old, new = plant.redis, stack.enter_context(redis_server())
        replica = stack.enter_context(replicate(old, new))
        run_id = str(replica.info("server")["run_id"])
        stays, moves = (stack.enter_context(TcpProxy(old.url)) for _ in range(2))
        plant.redis = cast("RedisServer", SimpleNamespace(url=moves.url))
        for proxy in (stays, moves):
            plant.start("orchestrator", ready=False, STORE=proxy.url)
            plant.start("worker", "--concurrency", "100", ready=False, STORE=proxy.url)
        for role in plant.roles:
            role.ready()
        asyncio.run(plant.until_owned(2))
        until_now(lambda: is_built(plant), "every partition is built")

        async def main() -> None:
            async with plant.client() as client:
                before = int(await total(plant, "rebuilds_total"))
                document = works.chain(length, "work_pause", config={"seconds": 1})
                ids = await client.submit(document, count)
                # some end meanwhile: PostgreSQL hears of each from one master
                for seconds in range(4, 24):
                    ending = works.chain(seconds, "work_pause", config={"seconds": 0.5})
                    await client.submit(ending, count // 4)
                await until(lambda: begun(plant, ids) == count, "all of them run")
                replica.replicaof("NO", "ONE")
                moves.lead_to(new.url)
                split_at = time.monotonic()
                await until(lambda: time.monotonic() - split_at >= fault.size(9, 12), seconds=30)
                stays.lead_to(new.url)
                await until(
                    lambda: servers(plant) == {run_id},
                    "every partition is on the new master",
                    seconds=60,
                )
                rebuilds = int(await total(plant, "rebuilds_total")) - before
                say(f"{rebuilds} rebuilds")
                assert rebuilds <= fault.size(PARTITIONS, 2 * PARTITIONS), "they are built in turns"
                assert any(
                    "are there two masters" in role.said() for role in plant.running("orchestrator")
                )
                fault.shows(executions=count, rebuilds=rebuilds)
                # a worker looks only twice a minute for tasks that it was given unnoticed
                if fault.is_full:
                    await everything_ends(plant, client, fault)
                assert not (unexpected_lines := complaints(plant)), unexpected_lines[0]

        asyncio.run(main())


async def everything_ends(plant: Plant, client: Client, fault: Fault) -> None:
    await client.until_ended(seconds=FULL_SECONDS)
    rebuilds = int(await total(plant, "rebuilds_total")) - PARTITIONS
    assert rebuilds <= 2 * PARTITIONS
    calls = sum(call.event == "begun" for call in plant.calls())
    needed = sum(len(document["nodes"]) for document in client.accepted.values())
    say(f"{rebuilds} rebuilds; {calls - needed} extra runs beside {needed}")
    assert calls - needed <= needed
    verdict = judge(plant, client.accepted, lossy=True).assert_guarantees()
    assert verdict.states() == {"COMPLETED": len(client.accepted)}
    fault.shows(rebuilds=rebuilds, extra_runs=calls - needed, runs=calls, missing=0)


def servers(plant: Plant) -> set[str]:
    """The Redis servers on which partitions are run, by their claims in PostgreSQL.

    Empty for a partition that no server runs.
    """
    with plant.connect() as connection:
        rows = connection.execute(
            "SELECT CASE WHEN seen_at > 0 THEN server ELSE '' END FROM partitions"
        )
        return {server for (server,) in rows.fetchall()}


def replicate(master: RedisServer, replica: RedisServer) -> redis.Redis:
    """Answers a connection to the replica, which has the master's password from now on."""
    where, password = urlsplit(master.url), urlsplit(master.url).password or ""
    with redis.Redis.from_url(replica.url) as link:
        link.config_set("masterauth", password)
        link.config_set("requirepass", password)
    link = redis.Redis(urlsplit(replica.url).hostname or "", replica.port, password=password)
    link.replicaof(where.hostname, where.port)
    until_now(
        lambda: link.info("replication").get("master_link_status") == "up", "it follows", seconds=30
    )
    return link


def copied(plant: Plant, ids: list[str]) -> int:
    with plant.connect() as connection:
        rows = connection.execute(
            "SELECT count(DISTINCT n) FROM executions JOIN segments USING (n) WHERE id = ANY(%s)",
            (ids,),
        )
        return int(rows.fetchall()[0][0])


def begun(plant: Plant, ids: list[str]) -> int:
    return len(
        {
            call.execution_id
            for call in plant.calls()
            if call.event == "begun" and call.execution_id in ids
        }
    )
