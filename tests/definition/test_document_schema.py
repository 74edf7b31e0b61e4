"""The JSON Schema of the document takes what the parser takes, and finds the mistakes it can."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.definition import compile_document, parse
from penstock.definition.document_fields import (
    CATCH_FIELDS,
    DAG_FIELDS,
    DEFAULTS_FIELDS,
    NODE_FIELDS,
    REPEAT_FIELDS,
    RETRY_FIELDS,
    WORKFLOW_FIELDS,
)
from penstock.definition.document_schema import document_schema
from penstock.definition.handler_configs import HANDLER_CONFIGS
from penstock.definition.model import BUILT_IN_HANDLERS, HANDLER_ALIASES
from penstock.definition.problems import Problems
from penstock.definition.read import RETRY_MEANINGS, read
from penstock.definition.read_regions import MAP_FIELDS
from penstock.errors import InvalidWorkflow
from tests.docs.pages import blocks

SCHEMA = document_schema()
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
TABLES = {
    "workflow": (WORKFLOW_FIELDS, SCHEMA),
    "node": (NODE_FIELDS, SCHEMA["$defs"]["node"]),
    "keyed node": (NODE_FIELDS, SCHEMA["$defs"]["keyed_node"]),
    "dag": (DAG_FIELDS, SCHEMA["$defs"]["dag"]),
    "defaults": (DEFAULTS_FIELDS, SCHEMA["$defs"]["defaults"]),
    "retry": (RETRY_FIELDS, SCHEMA["$defs"]["retry"]),
    "catch": (CATCH_FIELDS, SCHEMA["$defs"]["catch"]),
    "repeat": (REPEAT_FIELDS, SCHEMA["$defs"]["repeat"]),
}
REGION_FIELDS = ("for_each", "repeat", "nodes", *MAP_FIELDS)
"""Fields that have an effect only together, and so can't be chosen one by one."""
GOOD: dict[str, list[Any]] = {
    "id": ["a", "a b"],
    "handler": ["noop", "echo"],
    "type": ["noop"],
    "name": ["n"],
    "description": ["text", "two\nlines"],
    "depends_on": [[], "z", ["z"]],
    "dependencies": [[], "z", ["z"]],
    "config": [{}, {"x": 1}],
    "condition": [True, "1 < 2", ""],
    "finally": [True, False],
    "switch": ["1 + 1"],
    "cases": [{"a": ["z"], "default": "z"}, {}],
    "catches": [[], "z", ["z"], [{"node": "z", "on": ["http:5xx", "ValueError"]}]],
    "on": ["http", ["timeout", "http:404"]],
    "not_on": ["http", ["lost"]],
    "trigger_rule": ["all_done", "one_failed"],
    "queue": ["q"],
    "optional": [True, False],
    "dead_letter": [True, False],
    "on_dependency_failure": ["skip", "fail"],
    "on_failure": ["continue", "fail_fast"],
    "input_schema": [{}, True, {"type": "object"}],
    "input": [{}, {"a": 1}],
    "labels": [{}, {"a": "b"}],
    "$schema": ["https://example.com/schema.json"],
    "jitter": [True, 0, 1.5],
    "jitter_seconds": [False, 0, 1.5],
    "max_attempts": [1, 1000],
    "max_retries": [0, 999],
    "defaults": [{}, {"queue": "q", "retry": {"max_attempts": 2}}],
}
SOMETHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2000),
    st.floats(-1, 2000),
    st.sampled_from(["", "x", "a\nb", "all_done", "skip", "x" * 300]),
    st.lists(st.sampled_from(["z", 1]), max_size=2),
    st.dictionaries(st.sampled_from(["a", "queue", "max_attempts"]), st.integers(0, 3)),
)


def fields(table: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the fields, with values that are mostly good."""

    def values(name: str) -> st.SearchStrategy[Any]:
        good: st.SearchStrategy[Any] = st.sampled_from(GOOD.get(name, [1, 1.5]))
        if name.startswith("retry"):
            good = fields(RETRY_FIELDS)
        return st.one_of(good, good, good, SOMETHING)

    return st.fixed_dictionaries({}, optional={name: values(name) for name in table})


def without(table: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: field for name, field in table.items() if name not in names}


def is_accepted(document: Any) -> bool:
    try:
        compile_document(document)
    except InvalidWorkflow:
        return False
    return True


@pytest.mark.parametrize("name", TABLES)
def test_every_field_is_described_and_there_is_no_other(name: str):
    table, schema = TABLES[name]
    assert set(schema["properties"]) == set(table)
    assert all(field["description"].endswith(".") for field in schema["properties"].values())


def test_the_parser_reads_the_fields_of_the_tables_and_warns_of_others():
    document: dict[str, Any] = dict.fromkeys(without(WORKFLOW_FIELDS, "nodes", "dag"))
    node = dict.fromkeys(NODE_FIELDS) | {"id": "a", "handler": "noop"}
    document["nodes"] = [{**node, "retry": dict.fromkeys(RETRY_FIELDS)}]
    document["defaults"] = dict.fromkeys(DEFAULTS_FIELDS)
    assert compile_document(document, strict=True).warnings == []
    assert set(RETRY_MEANINGS) == set(RETRY_FIELDS)
    for part in (document, document["nodes"][0], document["nodes"][0]["retry"]):
        part["unheard_of"] = 1
    assert [problem.code for problem in compile_document(document).warnings] == [
        "unknown_field"
    ] * 3


def test_a_schema_in_a_document_is_fine():
    document = {"$schema": "./w.json", "nodes": [{"id": "a", "handler": "noop"}]}
    assert compile_document(document, strict=True).warnings == []


@given(
    fields(without(WORKFLOW_FIELDS, "nodes", "dag")),
    st.lists(fields(without(NODE_FIELDS, "id", "handler", *REGION_FIELDS)), min_size=1, max_size=3),
    st.sampled_from(["list", "object", "dag"]),
)
def test_what_the_parser_takes_fits_the_schema(
    workflow: dict[str, Any], nodes: list[dict[str, Any]], form: str
):
    listed: Any = [
        {"handler": "noop", **node, "id": f"n{number}"} for number, node in enumerate(nodes)
    ]
    listed.append({"id": "z", "handler": "noop"})
    if form == "object":
        listed = {node.pop("id"): node for node in listed}
    document = {**workflow, "nodes": listed}
    if form == "dag":
        document = {**workflow, "dag": {"nodes": listed}}
    problems = Problems()
    read(document, problems)
    # of two spellings the parser looks at one, and of the two places of a default too
    assume(all(problem.code != "ignored_field" for problem in problems.warnings))
    defaults = workflow.get("defaults")
    has_default = isinstance(defaults, dict) and "retry" in defaults
    assume(not (has_default and any(name.startswith("retry") for name in workflow)))
    bad_fields = {"bad_value", "bad_retry", "bad_catch", "bad_timeout", "bad_id", "missing_handler"}
    is_bad = any(problem.code in bad_fields for problem in problems.errors)
    assert VALIDATOR.is_valid(document) == (not is_bad), (problems.errors, document)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block.location)
        for block in blocks()
        if block.language == "json" and '"nodes"' in block.text
    ],
)
def test_documents_in_the_docs_fit(block: Any):
    document = parse(block.text, form="jsonc")
    if is_accepted(document):
        VALIDATOR.validate(document)


BAD_NODES: list[dict[str, Any]] = [
    {"handler": "noop"},
    {"id": "a"},
    {"id": "", "handler": "noop"},
    {"id": "a", "handler": "noop", "trigger_rule": "all_sucess"},
    {"id": "a", "handler": "noop", "retry": {"max_attempts": 0}},
    {"id": "a", "handler": "noop", "timeout_seconds": 0},
    {"id": "a", "handler": "noop", "depends_on": [1]},
    {"id": "a", "handler": "http_request", "config": {"ulr": "x", "url": "http://x"}},
    {"id": "a", "handler": "http_request", "config": {}},
    {"id": "a", "handler": "http_request"},
    {"id": "a", "type": "call_external_service", "config": {"url": 5}},
    {"id": "a", "handler": "http_request", "config": {"url": "http://x", "method": "GTE"}},
    {"id": "a", "handler": "http_request", "config": {"url": "api.example.com"}},
    {"id": "a", "handler": "decision", "config": {"value_a": 1, "operator": "=>", "value_b": 1}},
    {"id": "a", "handler": "decision", "config": {"value_a": 1, "operator": "=="}},
    {"id": "a", "handler": "llm", "config": {"model": "m"}},
    {"id": "a", "handler": "llm", "config": {"model": "m", "prompt": "x", "temperature": "hot"}},
    {"id": "a", "handler": "llm", "config": {"model": "m", "prompt": "x", "top_p": 1}},
    {"id": "a", "handler": "llm", "config": {"model": "m", "prompt": "x", "repairs": 0.5}},
    {"id": "a", "handler": "llm", "config": {"model": "m", "prompt": "x", "repairs": 6}},
    {"id": "a", "handler": "llm", "config": {"model": "m", "prompt": "x", "extra": {"n": 2}}},
    {"id": "a", "handler": "llm", "config": {"model": "m", "prompt": "x", "tools": {}}},
    {"id": "a", "handler": "sleep", "config": {"seconds": -1}},
    {"id": "a", "handler": "transform", "config": {"expression": 5}},
    {"id": "a", "handler": "noop", "for_each": 5},
    {"id": "a", "handler": "noop", "for_each": "list"},
    {"id": "a", "handler": "noop", "for_each": [1], "max_parallel": 0},
    {"id": "a", "handler": "noop", "for_each": [1], "on_item_failure": "ignore"},
    {"id": "a", "handler": "noop", "for_each": [1], "max_failures": "five"},
    {"id": "a", "for_each": [1], "nodes": []},
    {"id": "a", "for_each": [1], "nodes": [{"id": "b"}]},
    {"id": "a", "handler": "noop", "repeat": {"until": "true"}},
    {"id": "a", "handler": "noop", "repeat": {"max_rounds": 3}},
    {"id": "a", "handler": "noop", "repeat": {"until": "true", "max_rounds": 0}},
]


@pytest.mark.parametrize("node", BAD_NODES, ids=str)
def test_mistakes_are_found_by_both(node: dict[str, Any]):
    document = {"nodes": [node]}
    assert not is_accepted(document)
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "node",
    [
        {"id": "a", "handler": "http_request", "config": {"url": "{{ input.u }}", "method": "get"}},
        {"id": "a", "handler": "sleep", "config": {"seconds": "{{ input.s }}"}},
        {"id": "a", "handler": "sleep", "config": None},
        {"id": "a", "handler": "llm", "config": {"model": "m", "messages": "{{ input.m }}"}},
        {
            "id": "a",
            "handler": "decision",
            "config": {"value_a": None, "operator": "==", "value_b": None},
        },
    ],
    ids=str,
)
def test_references_and_nulls_fit_both(node: dict[str, Any]):
    document = {"nodes": [node]}
    compile_document(document)
    VALIDATOR.validate(document)


def test_configs_of_all_built_in_handlers_are_known():
    assert set(HANDLER_CONFIGS) == BUILT_IN_HANDLERS
    assert set(HANDLER_ALIASES.values()) <= BUILT_IN_HANDLERS


@pytest.mark.parametrize("name", ["schedules", "schedule"])
def test_schedules_in_a_document_are_refused_with_a_hint(name: str):
    document = {"nodes": [{"id": "a", "handler": "noop"}], name: [{"cron": "0 2 * * *"}]}
    with pytest.raises(InvalidWorkflow) as caught:
        compile_document(document)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("schedules_in_document", name)
    assert "penstock schedules put" in problem.message


def test_a_stored_document_with_schedules_still_compiles():
    document = {"nodes": [{"id": "a", "handler": "noop"}], "schedules": []}
    assert compile_document(document, stored=True).plan.nodes
