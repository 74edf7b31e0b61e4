"""Line and column of a problem."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from penstock.definition import parse
from penstock.definition.positions import located
from penstock.definition.problems import Problem, path_to
from penstock.errors import InvalidWorkflow

JSON_TEXT = """\
{
  // a comment with "nodes": [ in it
  "name": "x", "nodes": [
    {"id": "a", "config": {"list": [1, {"deep": "}"}], "a.b": "\\"["}},
    {"id": "b"}
  ]
}
"""
YAML_TEXT = """\
name: x
base: &base
  handler: noop
nodes:
  - id: a
    config:
      list: [1, {deep: 2}]
      "a.b": 3
  - <<: *base
    id: b
"""


def place(path: str, text: str, form: str) -> tuple[int | None, int | None]:
    (problem,) = located([Problem("code", path, "message")], text, form)
    if problem.line is UNSET or problem.column is UNSET:
        return None, None
    return problem.line, problem.column


@pytest.mark.parametrize(
    ("path", "in_json", "in_yaml"),
    [
        ("", (1, 1), (1, 1)),
        ("name", (3, 3), (1, 1)),
        ("nodes", (3, 16), (4, 1)),
        ("nodes[0]", (4, 5), (5, 5)),
        ("nodes[0].config.list", (4, 28), (7, 7)),
        ("nodes[0].config.list[1]", (4, 40), (7, 17)),
        ("nodes[0].config.list[1].deep", (4, 41), (7, 18)),
        ("nodes[0].config.a.b", (4, 56), (8, 7)),
        ("nodes[1].id", (5, 6), (10, 5)),
        ("nodes[1].handler", (5, 5), (3, 3)),
        ("nodes[1].retry.max_attempts", (5, 5), (9, 5)),
        ("nodes[7].id", (3, 16), (4, 1)),
        ("elsewhere", (1, 1), (1, 1)),
    ],
)
def test_a_path_has_a_place(path: str, in_json: Any, in_yaml: Any):
    assert place(path, JSON_TEXT, "jsonc") == in_json
    assert place(path, YAML_TEXT, "yaml") == in_yaml


def test_lines_that_end_otherwise_are_counted():
    assert place("b", '{"a": 1,\r\n "b": 2}', "json") == (2, 2)
    assert place("b", "a: 1\r\nb: 2\r\n", "yaml") == (2, 1)


def test_a_byte_order_mark_does_not_count():
    (problem,) = located([Problem("c", "a", "m")], b'\xef\xbb\xbf{"a": 1}', "json")
    assert (problem.line, problem.column) == (1, 2)


@pytest.mark.parametrize(
    ("text", "form", "line", "column"),
    [
        ('{"a": 1,\n }', "json", 2, 2),
        ("a: 1\nb: ]", "yaml", 2, 4),
        ("a: 1\nb: !x 1", "yaml", 2, None),
        ("[" * 100, "json", 1, 66),
    ],
)
def test_a_text_that_cannot_be_parsed_has_a_place_too(
    text: str, form: str, line: int, column: int | None
):
    with pytest.raises(InvalidWorkflow) as refused:
        parse(text, form=form)
    (problem,) = refused.value.problems
    assert problem.line == line
    if column is not None and form == "json" and "{" in text:
        assert problem.column == column


VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=4),
    ),
    max_leaves=20,
)


def paths_of(value: Any, path: str = "") -> list[tuple[str, str]]:
    """Each path, and the text that stands there."""
    paths: list[tuple[str, str]] = []
    if isinstance(value, dict):
        for key, item in value.items():
            inner = path_to(path, (key,))
            paths += [(inner, json.dumps(key)), *paths_of(item, inner)]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            inner = path_to(path, (index,))
            paths += [(inner, json.dumps(item)[0]), *paths_of(item, inner)]
    return paths


@given(VALUES)
@example({".": None, "..a": 1})
def test_every_path_of_a_document_leads_to_its_text(value: Any):
    text = json.dumps(value, indent=1)
    paths = paths_of(value)
    names = [path for path, _ in paths]
    problems = located([Problem("c", path, "m") for path in names], text, "json")
    lines = text.split("\n")
    for problem, (path, expected) in zip(problems, paths, strict=True):
        if names.count(path) > 1:
            continue  # keys with dots and brackets can make the same path
        assert problem.line is not UNSET
        assert problem.column is not UNSET
        assert lines[problem.line - 1][problem.column - 1 :].startswith(expected)
