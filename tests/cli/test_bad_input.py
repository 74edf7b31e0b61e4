"""Input that can't be used.

Exit code 2, one message that says where and what to do, and nothing is changed.
"""

import json
import re
from pathlib import Path

import pytest

from tests.cli.commands import nodes, penstock, write

GOOD = json.dumps(nodes({"id": "a", "handler": "noop"}))
FILES = {
    "good.json": GOOD,
    "broken.json": '{"nodes": [}',
    "broken.yaml": "nodes: [\n",
    "twice.json": '{"name": "a", "name": "b"}',
    "list.json": "[]",
    "empty.json": '{"nodes": []}',
    "latin.json": "",
    "cycle.json": json.dumps(
        nodes(
            {"id": "a", "handler": "noop", "dependencies": ["b"]},
            {"id": "b", "handler": "noop", "dependencies": ["a"]},
        )
    ),
    "several.json": json.dumps(
        nodes(
            {"id": "a", "handler": "nop"},
            {"id": "a", "handler": "noop"},
            {"id": "b", "handler": "noop", "dependencies": ["c"]},
        )
    ),
    "schema.json": json.dumps(
        {**nodes({"id": "a", "handler": "noop"}), "input_schema": {"required": ["user_id"]}}
    ),
    "unknown.json": json.dumps(nodes({"id": "a", "handler": "my_own_step"})),
    "syntax.py": "def broken(:\n",
    "missing.py": "import not_there\n",
    "builtin.py": "import penstock\n@penstock.handler('noop')\ndef noop(config): ...\n",
    "exits.py": "import sys\nsys.exit(3)\n",
}
HELP = "'penstock run --help' shows the arguments and options.\n"

# " ... " stands for text that belongs to the part of Penstock that refuses it.
CASES: list[tuple[list[str], str]] = [
    ([], f"penstock run: Missing argument 'FILE'.\n{HELP}"),
    (
        ["good.json", "--timeout", "soon"],
        "Invalid value for '--timeout': 'soon' is not a valid float.",
    ),
    (
        ["good.json", "--timeout", "nan"],
        "penstock run: Invalid value for --timeout: must be a number of seconds above 0\n",
    ),
    (["nowhere.json"], "penstock run: nowhere.json: there is no such file [unreadable]\n"),
    (["."], "penstock run: .: it can't be read: Is a directory [unreadable]\n"),
    (
        ["broken.json"],
        "penstock run: broken.json:1:12 not JSON: ... (line 1, column 12) ... [malformed_json]\n",
    ),
    (["broken.yaml"], "penstock run: broken.yaml:2:1 not YAML: ... [malformed_yaml]\n"),
    (["latin.json"], "penstock run: latin.json:1:11 the document isn't UTF-8 ... [not_utf8]\n"),
    (
        ["twice.json"],
        "penstock run: twice.json:1:2 name: the key 'name' stands twice ... [duplicate_key]\n",
    ),
    (["list.json"], "penstock run: list.json:1:1 a workflow is an object ... [not_an_object]\n"),
    (["empty.json"], "penstock run: empty.json:1:2 nodes: ... [empty_workflow]\n"),
    (
        ["cycle.json"],
        "penstock run: cycle.json:1:59 nodes[0].dependencies: ... a → b → a ... [cycle]\n",
    ),
    (
        ["several.json"],
        (
            "penstock run: several.json has 3 problems:\n"
            "  several.json:1:40 nodes[0].handler: ... [unknown_handler]\n"
            "  several.json:1:60 nodes[1].id: "
        ),
    ),
    (
        ["unknown.json"],
        "\nName your own handlers with --handlers MODULE or --handlers FILE.py.\n",
    ),
    (["good.json", "--input", "{"], "penstock run: --input: not JSON: "),
    (
        ["good.json", "--input", "[1]"],
        "penstock run: --input: the input must be an object, such as '{\"user_id\": 7}'\n",
    ),
    (["good.json", "--input", '{"a": NaN}'], "penstock run: --input: ... NaN"),
    (
        ["good.json", "--input", "@nowhere.json"],
        "penstock run: --input @nowhere.json: there is no such file\n",
    ),
    (
        ["-", "--input", "@-"],
        "penstock run: standard input can't be the document and --input at once; put one of them",
    ),
    (
        ["schema.json"],
        "input_schema: \"user_id\" is a required property; give one with --input '{…}'\n",
    ),
    (["good.json", "--label", "blue"], "penstock run: --label blue: write it as NAME=VALUE\n"),
    (["good.json", "--handlers", "nowhere.py"], "/nowhere.py with handlers\n"),
    (
        ["good.json", "--handlers", "no.such.module"],
        "penstock run: --handlers no.such.module: there is no module 'no",
    ),
    (["good.json", "--handlers", "syntax.py"], "penstock run: --handlers syntax.py: SyntaxError: "),
    (["good.json", "--handlers", "missing.py"], "No module named 'not_there' ("),
    (
        ["good.json", "--handlers", "builtin.py"],
        "'noop' is the name of a built-in handler; choose another\n",
    ),
    (["good.json", "--handlers", "exits.py"], "penstock run: --handlers exits.py: SystemExit: 3 ("),
    (
        ["good.json", "--store", "kept.db"],
        "penstock run: --store is 'kept.db'; allowed: a URL that starts with sqlite",
    ),
    (
        ["good.json", "--store", "sqlite:///no/kept.db"],
        "doesn't exist; create it, or name another file\n",
    ),
    (["good.json", "--store", "sqlite:///broken.json"], "broken.json can't be "),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad")
    write(path, FILES)
    (path / "latin.json").write_bytes(b'{"name": "\xe9"}')
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    CASES,
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_refused_with_one_message(folder: Path, arguments: list[str], message: str):
    before = {path.name for path in folder.iterdir()}
    done = penstock("run", *arguments, cwd=folder)
    pattern = ".*".join(re.escape(part) for part in message.split(" ... "))
    assert re.search(pattern, done.stderr), done.stderr
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("penstock run: ") == 1
    assert "Traceback" not in done.stderr
    left = {path.name for path in folder.iterdir()} - before
    assert not {name for name in left if not name.startswith(("__pycache__", "broken.json."))}


def test_a_bad_setting_is_named_with_its_source(folder: Path):
    done = penstock("run", "good.json", cwd=folder, env={"PENSTOCK_WORKER_THREADS": "many"})
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "penstock run: PENSTOCK_WORKER_THREADS is 'many'; allowed: a whole number, 1 or more\n"
    )


def test_debug_adds_the_traceback_and_keeps_the_message_and_the_code(folder: Path):
    done = penstock("run", "good.json", "--handlers", "missing.py", "--debug", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback (most recent call last)")
    assert done.stderr.splitlines()[-1].startswith(
        "penstock run: --handlers missing.py: ModuleNotFoundError"
    )


def test_an_unknown_command_is_refused(folder: Path):
    done = penstock("rum", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("penstock: there is no command 'rum'; did you mean 'run'?\n")
    assert done.stderr.endswith("'penstock --help' shows the commands.\n")
