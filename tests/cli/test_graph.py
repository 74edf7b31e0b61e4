"""`penstock graph`: for people, for Mermaid, for Graphviz."""

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.commands import chain, nodes, penstock, write

FLOW = nodes(
    {"id": "input", "handler": "input"},
    {"id": "user", "handler": "call_external_service", "dependencies": ["input"]},
    {"id": "stock", "handler": "my_own", "dependencies": ["input"], "optional": True},
    {"id": "vip", "handler": "decision", "dependencies": ["user"]},
    {"id": "letter", "handler": "llm", "dependencies": ["vip", "user"], "condition": "vip.result"},
    {
        "id": "output",
        "handler": "output",
        "dependencies": ["letter", "stock"],
        "trigger_rule": "all_done",
    },
)
HOSTILE = [
    'a"b',
    "c]d",
    "<script>",
    "e\\",
    "#35;",
    "`x`",
    "{{",
    "--> n0",
    "&lt;",
    "%% c",
    "end",
    'q\\"',
]


def draw(path: Path, document: object, form: str) -> str:
    write(path, {"flow.json": json.dumps(document)})
    done = penstock("graph", "flow.json", "--format", form, cwd=path)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_json_has_nodes_and_edges(tmp_path):
    write(tmp_path, {"flow.json": json.dumps(FLOW)})
    graph = json.loads(penstock("graph", "flow.json", "--json", cwd=tmp_path).stdout)
    assert graph["name"] == "test"
    assert [(node["id"], node["level"]) for node in graph["nodes"]] == [
        ("input", 0),
        ("user", 1),
        ("stock", 1),
        ("vip", 2),
        ("letter", 3),
        ("output", 4),
    ]
    assert {"from": "vip", "to": "letter"} in graph["edges"]
    assert len(graph["edges"]) == 7


def test_text_shows_levels(tmp_path):
    assert draw(tmp_path, FLOW, "text") == dedent("""\
        test: 6 nodes, 7 edges, 5 levels

             1   input   input
                 ↓
             2 ┌ user    call_external_service  ← input
               └ stock   my_own                 ← input  (optional)
                 ↓
             3   vip     decision               ← user
                 ↓
             4   letter  llm_service            ← vip, user  (if vip.result)
                 ↓
             5   output  output                 ← letter, stock  (all_done)
        """)


def test_mermaid(tmp_path):
    assert draw(tmp_path, FLOW, "mermaid") == dedent("""\
        flowchart TD
            n0(["input<br>input"])
            n1["user<br>call_external_service"]
            n2["stock<br>my_own"]
            n3{"vip<br>decision"}
            n4["letter<br>llm_service<br>if vip.result"]
            n5(["output<br>output"])
            n0 --> n1
            n0 --> n2
            n1 --> n3
            n3 -.-> n4
            n1 -.-> n4
            n4 --> n5
            n2 --> n5
        """)


def test_dot(tmp_path):
    assert draw(tmp_path, FLOW, "dot") == dedent("""\
        digraph "test" {
            node [shape=box, style=rounded, fontname="sans-serif"];
            n0 [label="input\\ninput"];
            n1 [label="user\\ncall_external_service"];
            n2 [label="stock\\nmy_own"];
            n3 [label="vip\\ndecision", shape=diamond];
            n4 [label="letter\\nllm_service\\nif vip.result"];
            n5 [label="output\\noutput"];
            n0 -> n1;
            n0 -> n2;
            n1 -> n3;
            n3 -> n4 [style=dashed];
            n1 -> n4 [style=dashed];
            n4 -> n5;
            n2 -> n5;
        }
        """)


def test_hostile_ids_stay_inside_their_labels_in_mermaid(tmp_path):
    lines = draw(tmp_path, chain(HOSTILE), "mermaid").splitlines()[1:]
    for line in lines[: len(HOSTILE)]:
        label = re.fullmatch(r'    n\d+\["([^"]*)"\]', line)
        assert label, line
        assert not set(label[1].replace("<br>", "")) & set('"[]<>{}&`%\\')
    assert lines[len(HOSTILE) :] == [f"    n{i} --> n{i + 1}" for i in range(len(HOSTILE) - 1)]


def test_hostile_ids_stay_inside_their_labels_in_dot(tmp_path):
    lines = draw(tmp_path, chain(HOSTILE), "dot").splitlines()
    labels = []
    for line in lines[2 : 2 + len(HOSTILE)]:
        label = re.fullmatch(r'    n\d+ \[label="((?:[^"\\]|\\.)*)\\nnoop"\];', line)
        assert label, line
        labels.append(re.sub(r"\\(.)", r"\1", label[1]).replace("&amp;", "&"))
    assert labels == HOSTILE


@pytest.mark.parametrize(
    "document",
    [
        chain(f"n{i}" for i in range(10_000)),
        nodes(
            {"id": "root", "handler": "noop"},
            *({"id": f"n{i}", "handler": "noop", "dependencies": ["root"]} for i in range(9_999)),
        ),
    ],
    ids=["deep", "wide"],
)
def test_10000_nodes_are_summed_up(tmp_path, document):
    drawn = draw(tmp_path, document, "text").splitlines()
    assert drawn[0].startswith("test: 10,000 nodes, 9,999 edges, ")
    assert len(drawn) < 60
    deep = "         9,980 levels with 9,980 nodes"
    wide = "       └ … and 9,996 more: 9,996 × noop"
    assert deep in drawn or wide in drawn


def test_a_bad_document_is_refused(tmp_path):
    write(tmp_path, {"flow.json": '{"nodes": []}'})
    done = penstock("graph", "flow.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("penstock graph: flow.json:1:2 nodes: ")


def test_dependencies_that_follow_from_references_are_drawn(tmp_path):
    flow = nodes(
        {"id": "user", "handler": "echo"},
        {"id": "letter", "handler": "echo", "config": {"to": "{{ user.name }}"}},
    )
    assert draw(tmp_path, flow, "text") == dedent("""\
        test: 2 nodes, 1 edge, 2 levels

             1   user    echo
                 ↓
             2   letter  echo  ← user
    """)


def test_maps_and_loops_show_what_they_run(tmp_path):
    body = [{"id": "fetch", "handler": "noop"}, {"id": "parse", "handler": "noop"}]
    document = {
        "name": "regions",
        "nodes": [
            {"id": "each", "for_each": "{{ input.pages }}", "nodes": body},
            {"id": "poll", "handler": "noop", "repeat": {"until": "round > 2", "max_rounds": 3}},
        ],
    }
    write(tmp_path, {"regions.json": json.dumps(document)})
    text = penstock("graph", "regions.json", cwd=tmp_path).stdout
    assert "for each of {{ input.pages }}: fetch, parse" in text
    assert "until round > 2" in text
    assert (
        "until round" in penstock("graph", "regions.json", "--format", "dot", cwd=tmp_path).stdout
    )
    mermaid = penstock("graph", "regions.json", "--format", "mermaid", cwd=tmp_path).stdout
    assert "fetch, parse" in mermaid
