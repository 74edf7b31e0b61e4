"""Schemas that would make more work than they are long, and those that only look as if they did."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from penstock.definition import compile_document
from penstock.definition.problems import Problem
from penstock.definition.schema import (
    MESSAGE_CHARACTERS_MAX,
    compile_schema,
    schema_errors,
    schema_problems,
)
from penstock.definition.schema_cost import cost_of, pattern_ns, pattern_states
from tests.definition.documents import node, problem_of, workflow


def doubling(levels: int, keyword: str = "anyOf", child: str | None = None) -> dict[str, Any]:
    """Each level refers to the next twice: at the same place, or for each `child`."""
    defs: dict[str, Any] = {}
    for level in range(levels):
        reference = {"$ref": f"#/$defs/l{level + 1}"}
        inner: Any = {"properties": {child: reference}} if child else reference
        defs[f"l{level}"] = {keyword: [inner, inner] if keyword.endswith("Of") else inner}
        if keyword in {"if", "not"}:
            defs[f"l{level}"] = {"if": inner, "then": inner, "else": inner}
    defs[f"l{levels}"] = {"type": "string"}
    return {"$ref": "#/$defs/l0", "$defs": defs}


RECURSIVE_TWICE = {
    "allOf": [{"properties": {"x": {"$ref": "#"}}}, {"additionalProperties": {"$ref": "#"}}]
}
OVERLAPPING = {"properties": {"x": {"$ref": "#"}}, "patternProperties": {"x": {"$ref": "#"}}}
ANCHORED = {
    "$defs": {"a": {"$anchor": "a", "items": {"anyOf": [{"$ref": "#a"}, {"$ref": "#a"}]}}},
    "$ref": "#a",
}
DEPENDENT = {"dependentSchemas": {"x": {"$ref": "#/$defs/l0"}}, "$defs": doubling(20)["$defs"]}
UNEVALUATED: dict[str, Any] = {"type": "object"}
for _ in range(20):
    UNEVALUATED = {"allOf": [UNEVALUATED], "unevaluatedProperties": False}

HOSTILE: dict[str, Any] = {
    "anyOf that doubles": doubling(20),
    "allOf that doubles": doubling(20, "allOf"),
    "oneOf that doubles": doubling(20, "oneOf"),
    "if, then and else": doubling(20, "if"),
    "one level deeper each time": doubling(20, child="x"),
    "recursion that doubles": RECURSIVE_TWICE,
    "two keywords for one property": OVERLAPPING,
    "through an anchor": ANCHORED,
    "through dependentSchemas": DEPENDENT,
    "nested unevaluatedProperties": UNEVALUATED,
    "a circle": {"$ref": "#"},
    "a longer circle": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
        "$ref": "#/$defs/a",
    },
    "very many alternatives": {"anyOf": [{"const": i} for i in range(2000)]},
    "a very large enum": {"enum": ["x" * 1000 + str(i) for i in range(1000)]},
    "a large pattern": {"pattern": "((a|b|c|d){1,50}){1,200}y"},
    "very many patterns": {"properties": {f"p{i}": {"pattern": "[ab]{1,900}"} for i in range(50)}},
    "a pattern with comments": {"pattern": "(?x) # [\n (a{900}){900} # ]\n"},
    "another $id": {"properties": {"x": {"$id": "https://example.com/x", "$ref": "#"}}},
    "a dynamic reference": {"$dynamicRef": "#x", "$dynamicAnchor": "x"},
    "a schema of schemas": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_schema_that_can_make_too_much_work_is_refused_with_its_document(schema: Any):
    problem = problem_of(node("a"), input_schema=schema)
    assert (problem.code, problem.path) == ("bad_schema", "input_schema")
    assert len(problem.message) < 600


ORDINARY: dict[str, Any] = {
    "a tree": {
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "name": {"type": "string"}}
    },
    "a list of trees": {
        "type": ["object", "null"],
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
    },
    "one definition in many places": {
        "properties": {f"p{i}": {"$ref": "#/$defs/id"} for i in range(300)},
        "$defs": {"id": {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}},
    },
    "a hundred alternatives": {
        "oneOf": [
            {"properties": {"kind": {"const": i}, "x": {"type": "string"}}} for i in range(100)
        ]
    },
    "names of people": {"pattern": r"^[\p{L} .'-]{1,50}$"},
    "a large enum": {"enum": [f"option {i}" for i in range(5000)]},
    "an $id of its own": {
        "$id": "https://example.com/order",
        "$ref": "https://example.com/order#/$defs/a",
        "$defs": {"a": {}},
    },
    "any": True,
}


@pytest.mark.parametrize("schema", ORDINARY.values(), ids=ORDINARY.keys())
def test_an_ordinary_schema_is_accepted(schema: Any):
    compile_document(workflow(node("a"), input_schema=schema))


def test_what_looks_at_one_place_adds_up_and_what_looks_at_different_ones_does_not():
    assert cost_of({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}).checks == 1
    assert cost_of({"allOf": [{"type": "object"}, {"type": "object"}]}).checks == 3
    assert cost_of(doubling(3)).checks == 30


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("abc", 3),
        ("a{10}", 10),
        ("(ab){1,5}", 10),
        ("((ab){5}c){10}", 110),
        ("[a-z]{3}", 3),
        (r"\d{4}-\d{2}", 7),
        ("[]a{9}]", 11),
    ],
)
def test_the_size_of_a_pattern_counts_what_is_repeated(pattern: str, states: int):
    assert pattern_states(pattern) == states


@pytest.mark.parametrize(
    ("pattern", "is_steady"),
    [
        (r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$", True),
        ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}$", True),
        ("^[A-Za-z0-9_-]{1,64}$", True),
        ("@", True),
        ("^[ab]{0,40}a[ab]{20}$", False),
        ("[ab]{1,64}", False),
        ("^(ab|cd){1,9}$", False),
        ("^a|[ab]{20}", False),
    ],
)
def test_patterns_that_never_have_a_choice_cost_little(pattern, is_steady):
    assert (pattern_ns(pattern) <= 2) == is_steady


def test_a_large_input_with_ordinary_patterns_is_checked():
    schema = {
        "items": {
            "properties": {
                "id": {"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}$"},
                "day": {"pattern": r"^\d{4}-\d{2}-\d{2}$"},
            }
        }
    }
    value = [{"id": f"{i:08x}-0000", "day": "2026-01-01"} for i in range(30_000)]
    assert schema_errors(schema, value) == []


def test_a_value_that_would_take_too_long_to_check_is_refused_and_not_checked():
    slow = compile_schema({"pattern": "([ab]*a[ab]{900}){3}[cd][ab]"})
    [mismatch] = slow.mismatches("ab" * 500_000)
    assert "too large to be checked against its schema (1,000,002 bytes)" in mismatch.message
    assert slow.mismatches("ab" * 50) != []
    compared = compile_schema({"items": {"enum": [{"v": i} for i in range(5000)]}})
    assert "too large to be checked" in compared.mismatches([{"v": 4999}] * 5000)[0].message


def test_a_value_that_does_not_fit_is_described_without_being_copied_for_every_alternative():
    schema = {"anyOf": [{"properties": {"x": {"type": "integer"}}} for _ in range(300)]}
    assert schema_errors(schema, {"x": "a" * 1_000_000}) == [
        "it doesn't fit its schema, and is too large to say where"
    ]


def test_a_message_quotes_only_a_part_of_the_value():
    [message] = schema_errors({"type": "object"}, "a" * 10_000)
    assert len(message) <= MESSAGE_CHARACTERS_MAX + 3
    assert message.endswith('is not of type "object"')


def test_a_million_mistakes_take_no_more_memory_than_one():
    schema = compile_schema({"items": {"type": "string"}})
    value = list(range(100_000))
    tracemalloc.start()
    try:
        assert [mismatch.path for mismatch in schema.mismatches(value)] == [(0,)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_a_schema_that_an_older_version_accepted_refuses_inputs_and_breaks_nothing():
    [problem] = schema_problems(doubling(20), {})
    assert (problem.code, problem.path) == ("bad_schema", "")
    document = workflow(node("a"), input_schema=doubling(20))
    assert isinstance(problem, Problem)
    assert compile_document(document, stored=True).plan.input_schema == doubling(20)
