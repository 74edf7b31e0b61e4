"""Hints find what was meant, and cost little whatever they are asked."""

import pytest

from penstock.spelling import CANDIDATES_MAX, nearest_name

FIELDS = [
    "id",
    "handler",
    "dependencies",
    "config",
    "condition",
    "trigger_rule",
    "retry",
    "timeout_seconds",
    "queue",
]
HANDLERS = [
    "noop",
    "echo",
    "sleep",
    "fail",
    "transform",
    "http_request",
    "call_external_service",
    "llm_service",
    "llm",
]


@pytest.mark.parametrize(
    ("word", "names", "meant"),
    [
        ("hanlder", FIELDS, "handler"),
        ("dependancies", FIELDS, "dependencies"),
        ("depends", FIELDS, "dependencies"),
        ("Config", FIELDS, "config"),
        ("timeout", FIELDS, "timeout_seconds"),
        ("triger_rule", FIELDS, "trigger_rule"),
        ("retrys", FIELDS, "retry"),
        ("nop", HANDLERS, "noop"),
        ("http_requst", HANDLERS, "http_request"),
        ("transfrom", HANDLERS, "transform"),
        ("slep", HANDLERS, "sleep"),
        ("call_external_servise", HANDLERS, "call_external_service"),
        ("xyz", FIELDS, None),
        ("", FIELDS, None),
        ("a" * 1000, ["a" * 1000], None),
    ],
)
def test_the_name_that_was_meant_is_found(word, names, meant):
    assert nearest_name(word, names) == meant


def test_only_so_many_names_are_looked_at():
    looked_at = iter(f"name{i}" for i in range(10 * CANDIDATES_MAX))
    nearest_name("nme1", looked_at)
    assert next(looked_at) == f"name{CANDIDATES_MAX}"
