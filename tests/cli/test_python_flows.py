"""`flow.py:flow`: workflows in Python where a document's file is expected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import penstock, write
from tests.cli.serving import Desk, dev

FLOW = """\
import penstock
from texts import greeting

print("imported")

@penstock.handler("greet")
def greet(config):
    return greeting(config["name"])

flow = penstock.Workflow("hello")
flow.node("greeting", greet, name="{{ input.name }}")
document = {"name": "plain", "nodes": [{"id": "a", "handler": "noop"}]}
wrong = {"nodes": [{"id": "a", "handler": "gret"}]}
not_json = {"nodes": [{"id": "a", "handler": "noop", "config": {"x": {1, 2}}}]}
number = 7
"""
FILES = {
    "flow.py": FLOW,
    "texts.py": "def greeting(name):\n    return f'Hi {name}'\n",
    "two.py": "import penstock\nfirst = penstock.Workflow('a')\nsecond = penstock.Workflow('b')\n",
    "broken.py": "import penstock\nraise RuntimeError('no luck')\n",
}
INPUT = ("--input", '{"name": "Ada"}')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    write(tmp_path / "project", FILES)
    return tmp_path


@pytest.mark.parametrize("target", ["project/flow.py:flow", "project/flow.py"])
def test_a_workflow_in_a_file_runs_with_its_handlers_and_neighbours(folder: Path, target: str):
    done = penstock("run", target, *INPUT, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"] == {"greeting": "Hi Ada"}
    assert "imported" not in done.stdout


def test_a_workflow_in_a_module_runs(folder: Path):
    done = penstock("run", "flow:flow", *INPUT, "--json", cwd=folder / "project")
    assert json.loads(done.stdout)["output"] == {"greeting": "Hi Ada"}


def test_it_is_validated_and_drawn(folder: Path):
    done = penstock("validate", "flow.py:flow", "flow.py:document", cwd=folder / "project")
    assert done.returncode == 0
    assert done.stdout == "ok: hello, 1 node, 0 edges\nok: plain, 1 node, 0 edges\n"
    graph = json.loads(penstock("graph", "flow.py", "--json", cwd=folder / "project").stdout)
    assert [node["handler"] for node in graph["nodes"]] == ["greet"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("flow.py:flo", "flow.py:flo: flow.py has no 'flo'; it has flow [unreadable]"),
        (
            "flow.py:number",
            "flow.py:number: it must be a penstock.Workflow or a dict, and it is of type int",
        ),
        (
            "flow.py:wrong",
            "flow.py:wrong: nodes[0].handler: no handler is called 'gret'; did you mean 'greet'?",
        ),
        ("flow.py:not_json", "flow.py:not_json: nodes[0].config.x: only objects, lists, text"),
        ("two.py", "two.py: it has 2 workflows; name one of them: two.py:first, two.py:second"),
        ("texts.py", "texts.py: it has no penstock.Workflow; name the variable of a dict as"),
        ("none.py:flow", "none.py:flow: there is no file "),
        ("nomodule:flow", "nomodule:flow: there is no module 'nomodule' with a workflow"),
        ("broken.py:flow", "broken.py:flow: RuntimeError: no luck ("),
    ],
)
def test_what_cannot_be_used_is_told(folder: Path, target: str, message: str):
    done = penstock("run", target, cwd=folder / "project")
    assert (done.returncode, done.stdout) == (2, "")
    lines = [line for line in done.stderr.splitlines() if line != "imported"]
    assert lines[0].startswith(f"penstock run: {message}")
    assert "Traceback" not in done.stderr


def test_debug_shows_where_the_module_failed(folder: Path):
    done = penstock("run", "broken.py:flow", "--debug", cwd=folder / "project")
    assert done.returncode == 2
    assert "raise RuntimeError('no luck')" in done.stderr


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    write(folder, FILES)
    with dev(folder, "--handlers", "flow.py") as url:
        yield Desk(folder, url)


def test_it_is_stored_and_submitted(desk: Desk):
    stored = desk("put", "flow.py:flow")
    assert (stored.returncode, stored.stdout) == (0, "hello@1\n")
    submitted = desk("submit", "flow:flow", *INPUT, "--wait", "--json")
    assert json.loads(submitted.stdout)["output"] == {"greeting": "Hi Ada"}


def test_a_stored_workflow_may_be_called_like_a_variable_of_a_module(desk: Desk):
    document = {"name": "report:daily", "nodes": [{"id": "a", "handler": "noop"}]}
    write(desk.folder, {"report.json": json.dumps(document)})
    desk.out("put", "report.json")
    assert desk.json("submit", "report:daily", "--wait")["state"] == "COMPLETED"
