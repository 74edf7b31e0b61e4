"""`penstock validate`: every problem of every file."""

import json

import pytest

from tests.cli.commands import nodes, penstock, write

GOOD = {
    **nodes({"id": "a", "handler": "noop"}, {"id": "b", "handler": "mine", "dependencies": ["a"]}),
    "name": "good",
}
BAD = nodes(
    {"id": "a", "handler": "noop", "dependencies": ["z"], "colour": 1},
    {"id": "a", "handler": "noop"},
)
HANDLERS = "import penstock\nprint('loaded')\n@penstock.handler('mine')\ndef mine(config): ...\n"


@pytest.fixture
def folder(tmp_path):
    write(
        tmp_path,
        {"good.json": json.dumps(GOOD), "bad.json": json.dumps(BAD), "handlers.py": HANDLERS},
    )
    return tmp_path


def test_a_good_document_is_ok(folder):
    done = penstock("validate", "good.json", "--handlers", "handlers.py", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "ok: good, 2 nodes, 1 edge\n",
        "loaded\n",
    )


def test_every_problem_of_every_file_is_listed_with_its_place_and_code(folder):
    done = penstock(
        "validate", "good.json", "bad.json", "gone.json", "--allow-unknown-handlers", cwd=folder
    )
    assert (done.returncode, done.stdout) == (2, "ok: good, 2 nodes, 1 edge\n")
    lines = done.stderr.splitlines()
    assert [line[line.rindex("[") :] for line in lines] == [
        "[duplicate_id]",
        "[unknown_dependency]",
        "[unreadable]",
    ]
    assert lines[0].startswith("bad.json:1:97 nodes[1].id: ")
    assert lines[1].startswith("bad.json:1:76 nodes[0].dependencies[0]: ")
    assert lines[2].startswith("gone.json: there is no such file")


def test_an_unknown_handler_is_a_problem_unless_allowed(folder):
    done = penstock("validate", "good.json", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("good.json:1:72 nodes[1].handler: ")


def test_warnings_do_not_count_unless_strict(folder):
    write(folder, {"odd.json": json.dumps({**GOOD, "colour": "blue"})})
    done = penstock("validate", "odd.json", "--allow-unknown-handlers", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "ok: good, 2 nodes, 1 edge, 1 warning\n")
    assert done.stderr.startswith("warning: odd.json:1:116 colour: ")
    done = penstock("validate", "odd.json", "--allow-unknown-handlers", "--strict", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")


def test_json_has_all_of_it(folder):
    done = penstock(
        "validate", "good.json", "bad.json", "--allow-unknown-handlers", "--json", cwd=folder
    )
    assert (done.returncode, done.stderr) == (2, "")
    report = json.loads(done.stdout)
    good, bad = report["files"]
    assert (report["ok"], good["ok"], bad["ok"]) == (False, True, False)
    assert good == {
        "file": "good.json",
        "ok": True,
        "errors": [],
        "warnings": [],
        "name": "good",
        "nodes": 2,
        "edges": 1,
    }
    assert {problem["code"] for problem in bad["errors"]} == {"duplicate_id", "unknown_dependency"}
    assert bad["errors"][0].keys() == {"code", "path", "message", "node_id", "line", "column"}
    assert (bad["errors"][0]["line"], bad["errors"][0]["column"]) == (1, 97)


CONFIGS = """\
nodes:
  - id: page
    handler: http_request
    config:
      ulr: https://example.com
  - id: big
    handler: transform
    config: {expression: "size(pgae.data) > 5"}
  - id: small
    handler: resize
    config: {width: wide}
"""
RESIZE = """\
import dataclasses
import penstock

@dataclasses.dataclass
class Resize:
    url: str
    width: int = 100

@penstock.handler("resize")
def resize(config: Resize): ...
"""


def test_what_could_not_run_is_refused_with_line_and_hint(folder):
    write(folder, {"flow.yaml": CONFIGS, "resize.py": RESIZE})
    done = penstock("validate", "flow.yaml", "--handlers", "resize.py", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        (
            "flow.yaml:5:7 nodes[0].config.ulr: call_external_service has no key 'ulr'"
            " in its config; did you mean 'url'? [unknown_config]"
        ),
        (
            'flow.yaml:4:5 nodes[0].config: call_external_service needs "url" in its config'
            " [missing_config]"
        ),
        'flow.yaml:11:5 nodes[2].config: Resize needs "url" in the config [missing_config]',
        (
            'flow.yaml:11:14 nodes[2].config.width: "width" doesn\'t fit Resize:'
            " Expected `int`, got `str` [bad_config]"
        ),
        (
            "flow.yaml:8:14 nodes[1].config.expression: the expression refers to 'pgae',"
            " which isn't a node; did you mean 'page'? [unknown_reference]"
        ),
    ]


def test_with_mocks_an_unknown_key_is_a_warning(folder):
    write(folder, {"flow.yaml": CONFIGS.partition("  - id: big")[0]})
    done = penstock("validate", "flow.yaml", cwd=folder, env={"PENSTOCK_MOCK_SERVICES": "1"})
    assert done.returncode == 0
    assert done.stderr.startswith("warning: flow.yaml:5:7 nodes[0].config.ulr: ")


def test_the_schema_is_printed(folder):
    done = penstock("schema", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    schema = json.loads(done.stdout)
    assert "depends_on" in schema["$defs"]["node"]["properties"]
