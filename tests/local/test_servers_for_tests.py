"""What other tests get from `tests/servers.py`."""

from __future__ import annotations

import psycopg
import redis

from tests.servers import REUSED_DATABASES, bare_database_url, database_url, redis_server, redis_url


def store_ids(urls: list[str]) -> set[str]:
    ids = set()
    for url in urls:
        with psycopg.connect(url) as connection:
            ids |= set(
                connection.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchall()
            )
    return {value for (value,) in ids}


def test_each_redis_database_is_another_and_empty():
    urls = [redis_url() for _ in range(3)]
    for url in urls:
        with redis.Redis.from_url(url) as client:
            assert client.dbsize() == 0
            client.set("mine", url)
    assert len(set(urls)) == 3


def test_each_postgresql_database_is_another_store():
    urls = [database_url(), database_url(), database_url(partitions=2)]
    assert len(set(urls)) == len(store_ids(urls)) == 3


def test_a_bare_database_has_no_tables():
    with psycopg.connect(bare_database_url()) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone() == (0,)


def test_a_database_that_comes_again_is_as_new():
    first = database_url(partitions=3)
    with psycopg.connect(first) as connection:
        connection.execute("INSERT INTO handlers VALUES ('left', '')")
        connection.execute("UPDATE partitions SET commit_number = 7")
    changed = database_url(partitions=3)
    with psycopg.connect(changed) as connection:
        connection.execute("ALTER TABLE handlers ADD COLUMN more int")
    later = [database_url(partitions=3) for _ in range(REUSED_DATABASES)]
    assert first in later
    assert changed not in later
    for url in later:
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT * FROM handlers").fetchall() == []
            assert connection.execute(
                "SELECT max(commit_number), count(*) FROM partitions"
            ).fetchone() == (0, 3)


def test_a_private_redis_can_be_killed():
    with redis_server(append_only="always") as server, redis.Redis.from_url(server.url) as client:
        client.set("kept", "yes")
        server.kill()
        server.restart()
        assert client.get("kept") == b"yes"
