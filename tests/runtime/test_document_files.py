"""`penstock.load`: documents from files, with the place of every problem."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock.errors import InvalidWorkflow

JSON_TEXT = """\
// a comment
{
  "name": "sums",
  "nodes": [
    {"id": "a", "handler": "echo", "config": {"n": "{{ input.n }}"}}
  ]
}
"""
YAML_TEXT = "name: sums\nnodes:\n  - id: a\n    handler: echo\n    config: {n: '{{ input.n }}'}\n"


@pytest.mark.parametrize(("name", "text"), [("f.json", JSON_TEXT), ("f.yaml", YAML_TEXT)])
def test_a_loaded_document_runs(tmp_path: Path, name: str, text: str):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    document = penstock.load(file)
    assert document["name"] == "sums"
    assert penstock.load(str(file)) == document
    assert penstock.run(document, {"n": 7}).output == {"a": {"n": 7}}


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("f.json", '{"nodes": [}', ["f.json:1:12 not JSON: "]),
        ("f.yaml", "nodes: [\n", ["f.yaml:2:1 not YAML: "]),
        ("f.json", "[]", ["f.json:1:1 a workflow is an object with nodes, not a list"]),
        ("f.yaml", "# only\n\n7\n", ["f.yaml:3:1 a workflow is an object with nodes"]),
        (
            "f.json",
            JSON_TEXT.replace('"id": "a"', '"id": "a", "retry": 7').replace("input.n", "b.n"),
            ["f.json:5:17 nodes[0].retry: ", "f.json:5:59 nodes[0].config.n: "],
        ),
        (
            "f.yaml",
            "nodes:\n  - id: a\n    handler: call_external_service\n    config: {ulr: x}\n",
            ["f.yaml:4:14 nodes[0].config.ulr: ", "f.yaml:4:5 nodes[0].config: "],
        ),
    ],
)
def test_problems_have_file_line_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, lines: list[str]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidWorkflow) as raised:
        penstock.load(name)
    text_lines = str(raised.value).splitlines()
    assert len(text_lines) == len(lines)
    for line, beginning in zip(text_lines, lines, strict=True):
        assert line.startswith(beginning)
    assert raised.value.file == name
    assert all(isinstance(problem.line, int) for problem in raised.value.problems)


def test_handlers_may_be_registered_later(tmp_path: Path):
    file = tmp_path / "f.yaml"
    file.write_text("nodes: [{id: a, handler: not-yet-there}]", encoding="utf-8")
    assert penstock.load(file)["nodes"][0]["handler"] == "not-yet-there"


def test_strict_refuses_unknown_fields(tmp_path: Path):
    file = tmp_path / "f.yaml"
    file.write_text("nodes: [{id: a, handler: noop, conifg: {}}]", encoding="utf-8")
    penstock.load(file)
    with pytest.raises(InvalidWorkflow, match=r"f\.yaml:1:32 .*did you mean 'config'"):
        penstock.load(file, strict=True)


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        penstock.load(tmp_path / "none.yaml")
