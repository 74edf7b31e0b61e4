"""`--store`: commands that look read the file of a store, also while a server has it open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import TIMEOUT_SECONDS, nodes, penstock, start, write
from tests.cli.serving import Desk, dev

HANDLERS = """\
import pathlib, time
import penstock

@penstock.handler("say")
def say(config, ctx):
    ctx.log.info("begins")
    while config.get("gate") and not pathlib.Path(config["gate"]).exists():
        time.sleep(0.05)
    ctx.log.info("ends")
"""
DOOMED = nodes(
    {"id": "say", "handler": "say"},
    {
        "id": "doomed",
        "handler": "fail",
        "depends_on": ["say"],
        "config": {"message": "no luck"},
        "retry": {"max_attempts": 1},
    },
)
GATED = nodes(
    {"id": "first", "handler": "say"},
    {"id": "gated", "handler": "say", "depends_on": ["first"], "config": {"gate": "gate"}},
)
STORE = ("--store", "sqlite:///penstock.db")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("desk")
    write(
        folder,
        {
            "doomed.json": json.dumps(DOOMED),
            "gated.json": json.dumps(GATED),
            "handlers.py": HANDLERS,
        },
    )
    with dev(folder, "--handlers", "handlers.py") as url:
        yield Desk(folder, url)


READS = [
    ("list", "--state", "failed"),
    ("list", "--json"),
    ("show", "@last"),
    ("results", "@last", "--json"),
    ("logs", "@last"),
    ("logs", "@last", "say"),
    ("errors", "--since", "1h"),
    ("dlq", "list"),
    ("dlq", "show", "1"),
]


def test_a_file_in_use_says_what_its_server_says(desk: Desk):
    desk.failed()
    for command in READS:
        from_server = desk(*command)
        from_file = desk(*command, *STORE)
        assert from_server.stdout, command
        assert (from_file.returncode, from_file.stdout, from_file.stderr) == (
            from_server.returncode,
            from_server.stdout,
            from_server.stderr,
        )


def test_logs_of_a_running_execution_are_followed_in_the_file(desk: Desk):
    gate = desk.folder / "gate"
    execution_id = desk.out("submit", "gated.json")
    with start("logs", execution_id, "--follow", *STORE, cwd=desk.folder) as process:
        assert process.stdout
        line = process.stdout.readline()
        while "first | " not in line or "ends" not in line:
            assert line, "it ended before the execution did"
            line = process.stdout.readline()
        gate.touch()
        rest, error = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, error) == (0, "")
    assert [tuple(line.split()[::4]) for line in rest.splitlines()] == [
        ("gated", "begins"),
        ("gated", "ends"),
    ]


def test_what_is_no_store_is_told_in_a_line(tmp_path: Path):
    write(tmp_path, {"text.db": "not a database, but long enough to be read as one" * 10})
    for store, message in {
        "sqlite:///text.db": "isn't a store of Penstock: file is not a database",
        "sqlite:///none.db": "there is no store",
        "text.db": "isn't a file that can be read beside its server; use sqlite:///FILE",
    }.items():
        done = penstock("list", "--store", store, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["text.db"]


def test_a_server_and_a_file_at_once_are_refused(tmp_path: Path):
    done = penstock("list", *STORE, "--url", "http://localhost:1", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("penstock list: use either --url or --store\n")
