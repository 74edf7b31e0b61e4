"""Error patterns in documents: what is taken, and what is refused with which hint."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.error_patterns import CATEGORIES
from penstock.definition.plan import compile_document
from penstock.engine.reasons import ErrorCategory
from penstock.errors import InvalidWorkflow


def compiled_retry(**retry: Any) -> Any:
    document = {"nodes": [{"id": "a", "handler": "noop", "retry": retry}]}
    return compile_document(document).plan.nodes[0].retry


def test_the_categories_are_those_of_the_engine():
    assert set(CATEGORIES) == set(ErrorCategory)


@pytest.mark.parametrize(
    "pattern", ["http", "http:503", "http:5xx", "ValueError", "_Odd", "billing", "out-of-stock"]
)
def test_patterns_that_are_taken(pattern):
    assert compiled_retry(on=[pattern], not_on=pattern).on == (pattern,)
    assert compiled_retry(on=[pattern], not_on=pattern).not_on == (pattern,)


@pytest.mark.parametrize(
    ("pattern", "path", "message"),
    [
        ("timout", "on[0]", "\"timout\" isn't known; did you mean 'timeout'?"),
        ("http:600", "on[0]", '"http:600" must be a status: http:503 or http:5xx'),
        ("http:5x", "on[0]", '"http:5x" must be a status: http:503 or http:5xx'),
        (
            "requests.Timeout",
            "on[0]",
            '"requests.Timeout" must be the name of the class alone: Timeout',
        ),
        (503, "on[0]", "503 must be text such as timeout, http:503, http:5xx or ValueError"),
        ("", "on[0]", '"" must be text such as timeout, http:503, http:5xx or ValueError'),
        (
            "not found",
            "on[0]",
            '"not found" must be a category, a status such as http:5xx or the name of an exception',
        ),
    ],
)
def test_patterns_that_are_refused(pattern, path, message):
    with pytest.raises(InvalidWorkflow) as error:
        compiled_retry(on=[pattern])
    [problem] = error.value.problems
    code = "bad_pattern" if pattern and isinstance(pattern, str) else "bad_retry"
    assert (problem.code, problem.path) == (code, f"nodes[0].retry.{path}")
    assert problem.message == message


def test_an_empty_list_is_refused():
    with pytest.raises(InvalidWorkflow) as error:
        compiled_retry(on=[])
    assert error.value.problems[0].message == '"on" must name at least one kind of error'


def test_a_node_s_own_patterns_replace_those_of_the_defaults():
    nodes = [
        {"id": "a", "handler": "noop", "retry": {"on": "http"}},
        {"id": "b", "handler": "noop"},
    ]
    defaults = {"retry": {"on": ["timeout"], "not_on": ["http:404"]}}
    plan = compile_document({"defaults": defaults, "nodes": nodes}).plan
    patterns = [(node.retry.on, node.retry.not_on) for node in plan.nodes]
    assert patterns == [(("http",), ("http:404",)), (("timeout",), ("http:404",))]
