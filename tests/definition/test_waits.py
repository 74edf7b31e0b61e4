"""Configs of nodes that wait: every mistake in a literal one is refused, with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.plan import compile_document
from penstock.errors import InvalidWorkflow

CASES: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("signal", {"name": "a\nb"}, "bad_signal_name", "name", "without line breaks"),
    ("signal", {"name": "~mine"}, "bad_signal_name", "name", "Penstock's own"),
    ("signal", {"name": "a" * 129}, "bad_signal_name", "name", "1 to 128 characters"),
    ("signal", {"names": []}, "bad_signal_name", "names", "1 to 50"),
    ("signal", {"name": "a", "schema": {"type": "objekt"}}, "bad_schema", "schema", "use string"),
    ("signal", {"name": "a", "count": 0}, "bad_config", "count", "from 1 to 1000"),
    ("wait", {"seconds": -1}, "bad_config", "seconds", "at least 0"),
    ("wait", {"until": "2027-01-31T09:00:00"}, "bad_until", "until", "add an offset"),
    ("wait", {"until": "tomorrow"}, "bad_until", "until", "a Unix time"),
    (
        "wait",
        {"until": "2027-01-31T09:00:00", "timezone": "Europe/Berln"},
        "bad_until",
        "timezone",
        "did you mean 'Europe/Berlin'?",
    ),
    ("approval", {"title": "x", "form": {"type": 3}}, "bad_schema", "form", "type: "),
    (
        "approval",
        {"title": "x", "approvers": {"keys": ["key_7"]}, "needed": 2},
        "bad_config",
        "needed",
        "one person counts once",
    ),
    ("approval", {"title": "x", "approvers": {"keys": []}}, "bad_config", "approvers", "1 to 100"),
]


@pytest.mark.parametrize(("handler", "config", "code", "key", "advice"), CASES)
def test_a_mistake_is_refused_at_its_place(
    handler: str, config: dict[str, Any], code: str, key: str, advice: str
):
    node = {"id": "ask", "handler": handler, "config": config}
    with pytest.raises(InvalidWorkflow) as raised:
        compile_document({"name": "waiting", "nodes": [node]})
    (problem,) = raised.value.problems
    assert (problem.code, problem.path) == (code, f"nodes[0].config.{key}")
    assert advice in problem.message


@pytest.mark.parametrize(
    ("handler", "config", "key"),
    [
        ("signal", {"name": "a", "on_timeout": "fail"}, "on_timeout"),
        ("approval", {"title": "x", "on_expire": "fail"}, "on_expire"),
    ],
)
def test_what_happens_after_a_time_limit_that_is_missing_is_a_warning(
    handler: str, config: dict[str, Any], key: str
):
    node = {"id": "ask", "handler": handler, "config": config}
    (warning,) = compile_document({"name": "waiting", "nodes": [node]}).warnings
    assert (warning.code, warning.path) == ("ignored_field", f"nodes[0].config.{key}")
