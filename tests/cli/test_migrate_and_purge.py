"""`penstock migrate` and `penstock purge`, on SQLite files and PostgreSQL."""

from __future__ import annotations

import json
import time

import psycopg
import pytest
from click.testing import CliRunner

from penstock.cli.moments import SECONDS
from penstock.cli.purge import purge
from tests.cli.commands import nodes, penstock, write
from tests.servers import bare_database_url, database_url

GOOD = {"good.json": json.dumps(nodes({"id": "a", "handler": "noop"}))}


def test_a_database_is_migrated_once_and_again(tmp_path):
    url = bare_database_url()
    for _ in range(2):
        done = penstock("migrate", "--database", url, "--partitions", "3", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("is up to date\n")
        assert ":***@" in done.stdout
    as_json = json.loads(penstock("migrate", "--database", url, "--json", cwd=tmp_path).stdout)
    assert ":***@" in as_json["database"]
    assert as_json["schema"]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'partitions'").fetchone() == (
            "3",
        )


def test_another_number_of_partitions_is_refused(tmp_path):
    url = database_url(partitions=2)
    done = penstock("migrate", "--partitions", "3", cwd=tmp_path, env={"DATABASE_URL": url})
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "2 partitions" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "no database is set"),
        (["--database", "postgresql://u:secret@127.0.0.1:1/d"], "127.0.0.1"),
        (["--database", "mysql://h/d"], "allowed: a URL that starts with postgresql://"),
        (["--database", "postgresql://h/d", "--partitions", "0"], "a whole number from 1 to 1024"),
    ],
)
def test_what_cannot_be_migrated_is_told_in_one_line(tmp_path, arguments, text):
    done = penstock("migrate", *arguments, cwd=tmp_path, env={"DATABASE_URL": ""})
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert text in done.stderr
    assert "secret" not in done.stderr


def test_a_file_is_purged(tmp_path):
    write(tmp_path, GOOD)
    store = ["--store", "sqlite:///work.db"]
    assert penstock("run", "good.json", *store, cwd=tmp_path).returncode == 0
    said = penstock("purge", "--older-than", "0s", "--dry-run", *store, cwd=tmp_path).stdout
    assert said == "sqlite:///work.db: 1 execution would be deleted\n"
    assert penstock("purge", "--older-than", "1d", *store, cwd=tmp_path).stdout.endswith(
        ": 0 executions deleted\n"
    )
    done = penstock(
        "purge",
        "--older-than",
        "0s",
        "--json",
        *store,
        cwd=tmp_path,
        env={"DATABASE_URL": "postgresql://h/d"},
    )
    expected = {
        "store": "sqlite:///work.db",
        "dry_run": False,
        "executions": 1,
        "blobs": 0,
        "blob_bytes": 0,
    }
    assert json.loads(done.stdout) == expected


def test_a_database_is_purged(tmp_path):
    url = database_url()
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO executions (created_at, ended_at, revision, generation, partition, "
            "version, id, workflow, phase, state, intent) "
            "VALUES (1, 2, 1, 1, 0, 1, 'old', 'flow', 'ended', 'COMPLETED', ''), "
            "(1, NULL, 1, 1, 0, 1, 'active', 'flow', 'started', 'RUNNING', '')"
        )
    said = penstock("purge", "--older-than", "1d", "--dry-run", "--database", url, cwd=tmp_path)
    assert said.stdout.endswith("1 execution would be deleted\n")
    done = penstock(
        "purge", "--older-than", "1d", "--json", cwd=tmp_path, env={"DATABASE_URL": url}
    )
    assert (done.returncode, json.loads(done.stdout)["executions"]) == (0, 1)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT id FROM executions").fetchall() == [("active",)]


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_the_age_of_an_execution_goes_by_the_clock_of_the_database(arguments, monkeypatch):
    url = database_url()
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO executions (created_at, ended_at, revision, generation, partition, "
            "version, id, workflow, phase, state, intent) "
            "SELECT now, now, 1, 1, 0, 1, 'young', 'flow', 'ended', 'COMPLETED', '' "
            "FROM (SELECT extract(epoch FROM clock_timestamp())::float8 AS now) AS clock"
        )
    year_seconds = 365 * SECONDS["d"]
    # this host's clock is wrong
    monkeypatch.setattr(time, "time", lambda: time.time_ns() / 1e9 + year_seconds)
    done = CliRunner().invoke(
        purge, ["--older-than", "1d", "--json", "--database", url, *arguments]
    )
    assert json.loads(done.stdout)["executions"] == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Missing option '--older-than'"),
        (["--older-than", "soon"], "'soon' is not an age such as 45m"),
        (["--older-than", "1d"], "there is no store penstock.db"),
        (["--older-than", "1d", "--store", "redis://h"], "finished executions are in PostgreSQL"),
        (["--older-than", "1d", "--store", "memory://"], "finished executions are in PostgreSQL"),
    ],
)
def test_what_cannot_be_purged_is_told(tmp_path, arguments, text):
    done = penstock("purge", *arguments, cwd=tmp_path, env={"DATABASE_URL": ""})
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) <= 2
    assert text in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_a_schema_is_not_purged(tmp_path):
    done = penstock("purge", "--older-than", "1d", "--database", bare_database_url(), cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "penstock migrate" in done.stderr
