"""Several API processes are one service.

Servers that belong to another service are refused with a reason.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from penstock.config import Settings
from penstock.runtime import open_scaled
from penstock.stores.postgres.migrating import migrate
from tests.acceptance import bulk, works
from tests.acceptance.outside import Caller, begin, caller, say
from tests.acceptance.plant import PARTITIONS, Role, open_plant
from tests.acceptance.served import LOST, Clients
from tests.cli.commands import penstock
from tests.servers import bare_database_url, database_url, redis_url
from tests.waiting import until

Event = tuple[str, str, Any]
"""Id, kind, data."""
BULK = 10_000_000
LIMIT = 10
STORE = "penstock:{fleet}:store"


def test_outputs_of_ten_megabytes_arrive_at_a_child_and_are_shown():
    make = works.node("make", (), "bulk_make", config={"size": BULK})
    measure = works.node(
        "measure", ["make"], "bulk_measure", config={"text": "{{ make.text }}", "of": "make"}
    )
    document = works.document("bulk", make, measure)
    digest = hashlib.sha256(bulk.text_of(BULK).encode()).hexdigest()
    with open_plant() as plant:
        plant.start("worker", "--handlers", str(bulk.__file__))
        (api,) = begin(plant, workers=0, apis=1)

        async def main() -> None:
            async with caller() as calls:
                pair = [await calls.order(api.ready(), document, "?wait=60") for _ in range(2)]
                assert [answer.body["state"] for answer in pair] == ["COMPLETED"] * 2
                for answer in pair:
                    result = await results(calls, api, answer.body["execution_id"])
                    assert result["outputs"]["measure"] == {"size": BULK, "digest": digest}
                    assert result["outputs"]["make"]["text"] == bulk.text_of(BULK)

        asyncio.run(main())
        with plant.connect() as connection:
            sizes = connection.execute("SELECT length(data) FROM blobs ORDER BY 1").fetchall()
        with plant.connect_redis() as link:
            used: Any = link.info("memory")
        say(f"blobs in PostgreSQL: {sizes}; Redis uses {used['used_memory'] / 1e6:.1f} MB")
        assert [size > BULK for (size,) in sizes] == [
            True
        ] * 2  # an output and a config, however often they are made
        assert used["used_memory_peak"] < BULK


async def results(calls: Caller, api: Role, execution_id: str) -> Any:
    return (await calls.get(f"{api.ready()}/api/v1/executions/{execution_id}/results")).body


def test_api_processes_share_one_rate_limit():
    with open_plant() as plant:
        apis = plant.start("api", count=2, RATE_LIMIT=f"{LIMIT}/minute")
        begin(plant, orchestrators=1, workers=1)

        async def main() -> None:
            async with caller() as calls:
                orders = [
                    calls.order(apis[n % 2].ready(), works.diamond()) for n in range(2 * LIMIT)
                ]
                answers = await asyncio.gather(*orders)
                assert sorted(answer.status for answer in answers) == [201] * LIMIT + [429] * LIMIT
                for api in apis:
                    answer = await calls.order(api.ready(), works.diamond())
                    assert (answer.status, answer.headers["X-RateLimit-Remaining"]) == (429, "0")
                    assert 0 < int(answer.headers["Retry-After"]) <= 60

        asyncio.run(main())


def test_events_are_followed_from_any_api_process_and_across_its_death():
    document = works.chain(10, "work_pause", config={"until": "go"})
    with open_plant() as plant:
        first, second = begin(plant, orchestrators=1, workers=1, apis=2)

        async def main() -> None:
            async with caller() as calls:
                name = (await calls.order(first.ready(), document)).body["execution_id"]
                seen: list[Event] = []
                reading = asyncio.create_task(read(calls, second.ready(), name, seen))
                await until(
                    lambda: any(data["to"] == "RUNNING" and data["node_id"] for *_, data in seen)
                )
                second.kill()
                await reading
                before = len(seen)
                plant.release("go")
                await read(calls, first.ready(), name, seen)
                say(f"{before} events from one API, {len(seen) - before} from the other")
                assert [int(number) for number, *_ in seen[:-1]] == list(range(1, len(seen)))
                assert seen[-1][1:] == (
                    "end",
                    {"execution_id": name, "state": "COMPLETED", **seen[-1][2]},
                )
                assert before < len(seen) - 10

        asyncio.run(main())


async def read(calls: Caller, address: str, execution_id: str, seen: list[Event]) -> None:
    """On from the last that was seen, until the stream ends or breaks."""
    reader = Clients(calls.session)
    reader.serve(address)
    with suppress(*LOST):
        async for event in reader.follow(
            f"/executions/{execution_id}/events", seen[-1][0] if seen else ""
        ):
            seen.append(event)  # noqa: PERF401 -- one by one: somebody watches it grow


def claimed_by_another() -> tuple[str, str]:
    store = redis_url()

    async def claim() -> None:
        async with open_scaled(
            Settings.load({"store": store, "database": database_url()}, environ={})
        ):
            pass

    asyncio.run(claim())
    return store, database_url()


def laid_out_by_a_newer_version() -> tuple[str, str]:
    store, database = redis_url(), database_url()
    with psycopg.connect(database) as connection, redis.Redis.from_url(store) as link:
        ((store_id,),) = connection.execute(
            "SELECT value FROM meta WHERE key = 'store_id'"
        ).fetchall()
        link.set(STORE, f"{store_id} 99")
    return store, database


def never_migrated() -> tuple[str, str]:
    return redis_url(), bare_database_url()


def migrated_by_a_newer_version() -> tuple[str, str]:
    database = bare_database_url()
    migrate(database, PARTITIONS)
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE penstock_version SET version_num = '9999'")
    return redis_url(), database


def with_other_partitions() -> tuple[str, str]:
    return redis_url(), database_url(PARTITIONS + 1)


@pytest.mark.parametrize(
    ("servers", "role", "reason"),
    [
        (claimed_by_another, "worker", "belongs to another Penstock database"),
        (laid_out_by_a_newer_version, "orchestrator", "laid out by another version of Penstock"),
        (never_migrated, "api", "has no Penstock schema; run `penstock migrate`"),
        (migrated_by_a_newer_version, "worker", "newer than this version of Penstock knows"),
        (with_other_partitions, "orchestrator", "partitions, which can't be changed"),
    ],
)
def test_servers_that_are_not_this_service_s_are_refused_with_a_reason(servers, role, reason):
    store, database = servers()
    settings = {"PENSTOCK_PARTITIONS": str(PARTITIONS)} if servers is with_other_partitions else {}
    done = penstock(
        role,
        env={
            "PENSTOCK_STORE": store,
            "PENSTOCK_DATABASE": database,
            "PENSTOCK_PORT": "0",
            **settings,
        },
    )
    assert done.returncode not in (0, 70), done.stderr  # 70 would be a mistake of ours
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert str(urlsplit(database).password) not in done.stderr
    assert done.stdout == ""
