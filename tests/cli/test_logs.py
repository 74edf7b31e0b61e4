"""`penstock logs`: the logs of an execution, of a node, and while they grow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.logs import LogPrinter
from tests.cli.commands import TIMEOUT_SECONDS, nodes, start, write
from tests.cli.serving import Desk, dev

HANDLERS = """\
import pathlib, time
import penstock

@penstock.handler("say", retry=penstock.Retry(max_attempts=2, initial_delay_seconds=0))
def say(config, ctx):
    ctx.log.info("%s begins", ctx.node_id)
    if config.get("fails") and ctx.attempt == 1:
        raise ValueError("not yet")
    gate = config.get("gate")
    while gate and not pathlib.Path(gate).exists():
        time.sleep(0.05)
    ctx.log.info("\\x1b[2J%s ends", ctx.node_id)
"""
TWO = nodes(
    {"id": "first", "handler": "say", "config": {"fails": True}},
    {"id": "second", "handler": "say", "dependencies": ["first"]},
    {"id": "silent", "handler": "noop"},
)
GATED = nodes(
    {"id": "open", "handler": "say"},
    {"id": "gated", "handler": "say", "dependencies": ["open"], "config": {"gate": "gate"}},
)
SILENT = nodes({"id": "silent", "handler": "noop"})


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("desk")
    files = {"two.json": TWO, "gated.json": GATED, "silent.json": SILENT}
    texts = {name: json.dumps(document) for name, document in files.items()}
    write(folder, {**texts, "handlers.py": HANDLERS})
    with dev(folder, "--handlers", "handlers.py") as url:
        yield Desk(folder, url)


def ended(desk: Desk, file: str) -> str:
    return str(desk.json("submit", file, "--wait")["execution_id"])


def test_all_logs_of_an_execution_with_the_names_of_the_nodes(desk: Desk):
    execution_id = ended(desk, "two.json")
    lines = [line.split(maxsplit=4) for line in desk.out("logs", execution_id).splitlines()]
    assert [(line[0], line[4]) for line in lines] == [
        ("first", "first begins"),
        ("first#2", "first begins"),
        ("first#2", "first ends"),
        ("second", "second begins"),
        ("second", "second ends"),
    ]
    items = desk.json("logs", execution_id[:24])["items"]
    assert [(item["node_id"], item["attempt"]) for item in items] == [
        ("first", 1),
        ("first", 2),
        ("second", 1),
    ]


def test_the_log_of_one_node(desk: Desk):
    ended(desk, "two.json")
    lines = desk.out("logs", "@last", "second").splitlines()
    assert [line.split(maxsplit=2)[2] for line in lines] == ["second begins", "second ends"]
    assert "\x1b" not in "".join(lines)
    assert [item["node_id"] for item in desk.json("logs", "@last", "second")["items"]] == ["second"]


def test_an_execution_without_logs_and_a_node_that_is_not_there(desk: Desk):
    execution_id = ended(desk, "silent.json")
    done = desk("logs", execution_id)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No logs.\n")
    missing = desk("logs", execution_id, "silen")
    assert missing.returncode == 2
    assert "silent" in missing.stderr


@pytest.mark.parametrize("node", [(), ("gated",)])
def test_following_shows_lines_as_they_come_until_the_end(desk: Desk, node: tuple[str, ...]):
    gate = desk.folder / "gate"
    gate.unlink(missing_ok=True)
    execution_id = desk.out("submit", "gated.json")
    command = ("logs", execution_id, *node, "--follow", "--url", desk.url)
    with start(*command, cwd=desk.folder) as process:
        assert process.stdout
        line = process.stdout.readline()
        while "gated begins" not in line:
            assert line, "it ended before the node did"
            line = process.stdout.readline()
        gate.touch()
        rest, error = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, error) == (0, "")
    assert [line.split()[-2:] for line in rest.splitlines()] == [["gated", "ends"]]


def test_following_in_json_gives_every_line_once(desk: Desk):
    execution_id = ended(desk, "two.json")
    done = desk("logs", execution_id, "-f", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    items = [json.loads(line) for line in done.stdout.splitlines()]
    lines: list[str] = []
    for item in items:
        lines += item["text"].splitlines()
    assert [(item["node_id"], item["attempt"]) for item in items] == [
        ("first", 1),
        ("first", 2),
        ("second", 1),
    ]
    assert len(lines) == 5


def test_of_a_log_that_has_grown_the_new_lines_are_printed(capsys: pytest.CaptureFixture[str]):
    printer = LogPrinter(has_names=True, as_json=False)
    printer.show({"node_id": "a\nb", "attempt": 1, "text": "one\ntwo"})
    printer.show({"node_id": "a\nb", "attempt": 1, "text": "one\ntwo"})
    printer.show({"node_id": "a\nb", "attempt": 1, "text": "one\ntwo\nthree"})
    printer.show({"node_id": "a\nb", "attempt": 2, "text": "one"})
    assert capsys.readouterr().out == "a b | one\na b | two\na b | three\na b#2 | one\n"
