"""`penstock doctor` on Redis and PostgreSQL."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import redis

from tests.cli.commands import penstock
from tests.servers import bare_database_url, database_url, redis_server, redis_url


def checks(
    cwd: Path, store: str, database: str | None = None
) -> tuple[int, dict[str, tuple[str, str]]]:
    options = ["--store", store, *(["--database", database] if database else [])]
    done = penstock("doctor", "--json", *options, cwd=cwd)
    results: list[dict[str, Any]] = json.loads(done.stdout)["checks"]
    return done.returncode, {
        result["check"]: (result["outcome"], result["text"]) for result in results
    }


def test_everything_that_is_well_is_said_to_be(tmp_path):
    with redis_server() as server:
        code, result_by_check = checks(tmp_path, server.url, database_url(partitions=2))
    assert code == 0
    fine = {
        "PostgreSQL",
        "PostgreSQL clock",
        "schema",
        "partitions",
        "Redis",
        "Redis memory",
        "Redis persistence",
        "Redis clock",
        "lag",
    }
    assert {name for name in fine if result_by_check[name][0] != "ok"} == set()
    assert result_by_check["partitions"][1].startswith("2,")
    assert result_by_check["fleet"] == (
        "note",
        "0 orchestrators, 0 live workers; start one with 'penstock orchestrator'",
    )


def test_lag_is_shown(tmp_path):
    url, database = redis_url(), database_url(partitions=2)
    with redis.Redis.from_url(url) as client:
        client.xadd("penstock:{1}:inbox", {"a": "b"})
        client.rpush("penstock:{0}:outbox", "a", "b")
    _, result_by_check = checks(tmp_path, url, database)
    assert result_by_check["lag"] == ("ok", "1 entries in the inboxes, 2 in the outboxes")


def test_a_queue_that_no_live_worker_serves_is_found(tmp_path):
    url, database = redis_url(), database_url(partitions=2)
    with redis.Redis.from_url(url) as client:
        for queue in ("gpu", "cpu", "cpu\x1fpaint"):
            client.sadd("penstock:{1}:queues", f"0:{queue}")
            client.xgroup_create(f"penstock:{{1}}:tasks:0:{queue}", "workers", "0", mkstream=True)
            client.xadd(f"penstock:{{1}}:tasks:0:{queue}", {"1": "a task"})
        about = {"running": 0, "handlers": {"draw": {}}, "since": 0}
        alive = json.dumps({**about, "queues": ["cpu"], "at": time.time()})
        dead = json.dumps({**about, "queues": ["gpu"], "at": time.time() - 60})
        client.hset("penstock:{fleet}:workers", mapping={"alive": alive, "dead": dead})
    done = penstock("doctor", "--json", "--store", url, "--database", database, cwd=tmp_path)
    queues = [
        (check["outcome"], check["text"])
        for check in json.loads(done.stdout)["checks"]
        if check["check"] == "queue"
    ]
    assert done.returncode == 1
    (no_handler, no_worker) = queues
    assert no_handler[0] == no_worker[0] == "failed"
    assert no_handler[1].startswith(
        "1 tasks wait: no live worker of the queue 'cpu' has the handler 'paint'; start one"
    )
    assert (
        no_worker[1] == "1 tasks wait: no live worker serves the queue 'gpu'; start one that does"
    )


def test_settings_that_lose_data_are_found(tmp_path):
    with redis_server(append_only=None, extra=("--maxmemory-policy", "allkeys-lru")) as server:
        code, result_by_check = checks(tmp_path, server.url, database_url())
    assert code == 1
    assert result_by_check["Redis memory"][0] == "failed"
    assert result_by_check["Redis persistence"][0] == "note"


def test_another_stores_redis_is_found(tmp_path):
    url = redis_url()
    with redis.Redis.from_url(url) as client:
        client.set("penstock:{fleet}:store", "somebody 1")
    code, result_by_check = checks(tmp_path, url, database_url())
    assert code == 1
    assert result_by_check["Redis store"][0] == "failed"


def test_a_database_that_was_not_migrated_is_found(tmp_path):
    code, result_by_check = checks(tmp_path, redis_url(), bare_database_url())
    assert code == 1
    assert result_by_check["schema"][0] == "failed"
    assert "penstock migrate" in result_by_check["schema"][1]


def test_servers_that_are_away_are_told_without_passwords(tmp_path):
    code, result_by_check = checks(
        tmp_path, "redis://:secret@127.0.0.1:1", "postgresql://u:secret@127.0.0.1:1/d"
    )
    assert code == 1
    assert result_by_check["PostgreSQL"][0] == result_by_check["Redis"][0] == "failed"
    assert "secret" not in json.dumps(result_by_check)


def test_redis_without_a_database_is_told(tmp_path):
    code, result_by_check = checks(tmp_path, redis_url())
    assert code == 1
    assert "PENSTOCK_DATABASE" in result_by_check["PostgreSQL"][1]
