"""Literal configs are checked when a document is submitted."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pydantic
import pytest

from penstock import testing
from penstock.definition import compile_document
from penstock.definition.handler_configs import HANDLER_CONFIGS, METHODS, OPERATORS, ConfigRules
from penstock.definition.problems import Problem
from penstock.engine import data
from penstock.errors import InvalidWorkflow
from penstock.worker.registry import Handler, Registry, handler
from tests.definition.documents import problems_of, workflow


def problems_in(name: str, config: dict[str, Any], **rules: Any) -> list[tuple[str, str, str]]:
    document = workflow({"id": "a", "handler": name, "config": config})
    try:
        compile_document(document, config_rules=ConfigRules(**rules), allow_unknown_handlers=True)
    except InvalidWorkflow as refused:
        return [(item.code, item.path, item.message) for item in refused.problems]
    return []


KNOWN_MISTAKES = [
    (
        "http_request",
        {"ulr": "https://a.test"},
        [
            (
                "unknown_config",
                ".ulr",
                "call_external_service has no key 'ulr' in its config; did you mean 'url'?",
            ),
            ("missing_config", "", 'call_external_service needs "url" in its config'),
        ],
    ),
    ("http_request", {"url": 5}, [("bad_config", ".url", '"url" must be text, not a number')]),
    (
        "http_request",
        {"url": "https://a.test", "body": "a", "json": 1},
        [
            (
                "bad_config",
                ".json",
                'call_external_service takes only one of "body" or "json" in its config',
            )
        ],
    ),
    (
        "http_request",
        {"url": "https://a.test", "timeout_seconds": 0},
        [("bad_config", ".timeout_seconds", '"timeout_seconds" must be above 0, not 0')],
    ),
    *(
        (
            "http_request",
            {"url": url},
            [
                (
                    "bad_config",
                    ".url",
                    f'"url" must be an address that begins with http:// or https://, not "{url}"',
                )
            ],
        )
        for url in ("", "api.test/users", "/users", "ftp://a.test", "https:///users")
    ),
    (
        "http_request",
        {
            "url": "https://a.test",
            "headers": {"a b": "x", "Host": "x", "X-A": "a\nb", "x-a": 1, "X-B": [1], "X-C": None},
            "params": {"a": {}, "b": [1, "x", None, True]},
            "expect_status": [200, "404", 99],
        },
        [
            ("bad_config", ".headers.a b", "'a b' can't be the name of a header"),
            ("bad_config", ".headers.Host", "the HTTP client sets this header; remove it"),
            (
                "bad_config",
                ".headers.X-A",
                "line breaks and control characters aren't allowed",
            ),
            ("bad_config", ".headers.x-a", "the header is given twice"),
            ("bad_config", ".headers.X-B", "must be text, a number or a boolean, not a list"),
            ("bad_config", ".params.a", "must be text, a number or a boolean, not an object"),
            (
                "bad_config",
                ".expect_status[1]",
                'a status is a number from 100 to 599, not "404"',
            ),
            ("bad_config", ".expect_status[2]", "a status is a number from 100 to 599, not 99"),
        ],
    ),
    (
        "validate",
        {"schema": {"type": "objekt"}},
        [
            (
                "bad_config",
                ".schema",
                (
                    '"schema" isn\'t a usable JSON Schema: type: "objekt" isn\'t a type; use'
                    " string, number, integer, boolean, object, array or null"
                ),
            )
        ],
    ),
    (
        "transform",
        {"transform_type": "uppercase"},
        [
            (
                "bad_config",
                ".transform_type",
                'transform takes "transform_type" only with "input" in its config',
            )
        ],
    ),
    (
        "compute",
        {"operation": "add", "a": "one"},
        [
            ("bad_config", ".a", '"a" must be a number, not "one"'),
            (
                "bad_config",
                ".operation",
                'compute takes "operation" only with "b" in its config',
            ),
        ],
    ),
    (
        "llm",
        {"prompt": "hi"},
        [("missing_config", "", 'llm_service needs "model" in its config')],
    ),
    (
        "llm",
        {"model": "m"},
        [("missing_config", "", 'llm_service needs "prompt" or "messages" in its config')],
    ),
    (
        "llm",
        {"model": "m", "prompt": "hi", "top_p": 1},
        [
            (
                "unknown_config",
                ".top_p",
                (
                    "llm_service has no key 'top_p' in its config; "
                    'parameters that only the model knows go into "extra"'
                ),
            )
        ],
    ),
    (
        "llm",
        {"model": "m", "prompt": "hi", "extra": {"n": 2}, "repairs": 9, "tool_choice": "auto"},
        [
            ("bad_config", ".repairs", '"repairs" must be at most 5, not 9'),
            ("bad_config", ".extra.n", '"extra" can\'t have "n": one answer is read'),
            (
                "bad_config",
                ".tool_choice",
                'llm_service takes "tool_choice" only with "tools" in its config',
            ),
        ],
    ),
    (
        "llm",
        {
            "model": "m",
            "messages": [
                {"content": "Hello"},
                {"role": "user", "content": [{"type": "image_url", "image_url": "file:///a.png"}]},
            ],
            "tools": [{"type": "function", "function": {"name": "a b", "parameters": []}}],
        },
        [
            (
                "bad_config",
                ".messages[0]",
                'a message needs a "role": system, user, assistant or tool',
            ),
            (
                "bad_config",
                ".messages[1].content[0].image_url",
                (
                    "an image needs an http or https address, or data:image/…;base64,…, "
                    'not "file:///a.png"'
                ),
            ),
            (
                "bad_config",
                ".tools[0].function.name",
                '"name" of a tool must be up to 64 letters, digits, _ and -, not "a b"',
            ),
            (
                "bad_config",
                ".tools[0].function.parameters",
                '"parameters" must be a JSON Schema, an object, not a list',
            ),
        ],
    ),
    (
        "decision",
        {"value_a": 1, "operator": "=>", "value_b": 2},
        [
            (
                "bad_config",
                ".operator",
                '"operator" must be one of ==, !=, >, >=, <, <=, in, contains, not "=>"',
            )
        ],
    ),
    (
        "decision",
        {"value_a": 1, "operator": "<"},
        [("missing_config", "", 'decision needs "value_b" in its config')],
    ),
    (
        "sleep",
        {"seconds": True},
        [("bad_config", ".seconds", '"seconds" must be a number, not true or false')],
    ),
    (
        "sleep",
        {"secs": 1},
        [
            (
                "unknown_config",
                ".secs",
                "sleep has no key 'secs' in its config; did you mean 'seconds'?",
            )
        ],
    ),
    (
        "aggregate",
        {"operation": "summ"},
        [
            (
                "bad_config",
                ".operation",
                (
                    '"operation" must be one of list, count, sum, average, min, max, concat, merge,'
                    ' not "summ"'
                ),
            )
        ],
    ),
]


@pytest.mark.parametrize(("name", "config", "expected"), KNOWN_MISTAKES, ids=str)
def test_a_mistake_in_a_literal_config_is_refused(
    name: str, config: dict[str, Any], expected: list[tuple[str, str, str]]
):
    assert problems_in(name, config) == [
        (code, f"nodes[0].config{path}", message) for code, path, message in expected
    ]


@pytest.mark.parametrize(("name", "config", "expected"), KNOWN_MISTAKES, ids=str)
def test_where_a_config_may_come_later_it_is_a_warning(
    name: str, config: dict[str, Any], expected: list[tuple[str, str, str]]
):
    document = workflow({"id": "a", "handler": name, "config": config})
    compiled = compile_document(document, config_rules=ConfigRules(is_lenient=True))
    assert [problem.code for problem in compiled.warnings] == [code for code, _, _ in expected]


@pytest.mark.parametrize(("name", "config", "expected"), KNOWN_MISTAKES, ids=str)
def test_a_stored_document_still_compiles(name: str, config: dict[str, Any], expected: Any):
    document = workflow({"id": "a", "handler": name, "config": config})
    assert compile_document(document, stored=True).warnings == []


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("http_request", {"url": "{{ input.url }}", "method": "get", "headers": "{{ input.h }}"}),
        ("http_request", {"url": "https://a.test", "expect_status": [200, 404], "params": None}),
        (
            "http_request",
            {
                "url": "HTTPS://{{ input.host }}/x",
                "headers": {"Authorization": "Bearer {{ secrets.KEY }}", "X-A": "{{ input.a }}"},
                "params": {"page": "{{ input.page }}", "id": [1, "{{ input.id }}"]},
                "expect_status": [200, "{{ input.status }}"],
            },
        ),
        ("validate", {"schema": {"type": "{{ input.type }}"}}),
        ("compute", {"operation": "add", "a": " 2.5 ", "b": "{{ input.b }}"}),
        (
            "llm",
            {
                "model": "m",
                "messages": [
                    "{{ input.first }}",
                    {"role": "{{ input.role }}", "content": "{{ input.text }}"},
                    {"role": "user", "content": ["{{ input.part }}"]},
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": "{{ input.url }}"}],
                    },
                    {"role": "assistant", "tool_calls": "{{ input.calls }}"},
                ],
                "tools": ["{{ input.tool }}"],
                "tool_choice": "{{ input.choice }}",
                "extra": {"top_p": "{{ input.top_p }}"},
                "repairs": "{{ input.repairs }}",
            },
        ),
        ("decision", {"value_a": None, "operator": "{{ input.op }}", "value_b": None}),
        ("transform", {}),
        ("transform", {"input": 1, "transform_type": "uppercase"}),
        ("noop", {"anything": 1}),
        ("echo", {"anything": 1}),
        ("sleep", {}),
        ("sleep", {"seconds": "{{ input.s }}"}),
        ("fail", {"times": 2, "message": 5}),
        ("compute", {"operation": "add", "a": "1", "b": 2}),
        ("validate", {"input": 1, "schema": {}, "required": ["a"]}),
    ],
    ids=str,
)
def test_what_can_run_is_accepted(name: str, config: dict[str, Any]):
    assert problems_in(name, config) == []


def test_a_model_is_not_needed_where_the_settings_have_one():
    assert problems_in("llm", {"prompt": "hi"}, has_models=True) == []


def test_a_handler_of_ones_own_with_the_name_of_a_small_one_takes_any_config():
    document = workflow({"id": "a", "handler": "validate", "config": {"whatever": 1}})
    from penstock.definition.model import HandlerDefaults  # noqa: PLC0415

    compile_document(document, handlers={"validate": HandlerDefaults()})


def test_the_tables_say_what_the_engine_and_the_workers_do():
    assert tuple(data.OPERATORS) == OPERATORS
    from penstock.worker.handlers import data as small  # noqa: PLC0415

    shapes = {
        name: {key.name: key for key in shape.keys} for name, shape in HANDLER_CONFIGS.items()
    }
    assert shapes["penstock.aggregate"]["aggregate_type"].choices == tuple(small.AGGREGATES)
    assert shapes["penstock.compute"]["operation"].choices == tuple(small.OPERATIONS)
    assert shapes["call_external_service"]["method"].choices == METHODS


@dataclasses.dataclass
class ResizeData:
    url: str
    width: int = 100
    tags: list[str] = dataclasses.field(default_factory=list)


class ResizeStruct(msgspec.Struct):
    url: str
    width: int = 100
    tags: list[str] = []


def resize_model() -> Any:
    return pydantic.create_model(
        "ResizeModel", url=(str, ...), width=(int, 100), tags=(list[str], [])
    )


def typed(kind: Any) -> Registry:
    registry = Registry()

    def resize(config: Any) -> None: ...

    resize.__annotations__["config"] = kind
    handler("resize", registry=registry)(resize)
    return registry


@pytest.mark.parametrize("kind", [ResizeData, ResizeStruct, resize_model()])
@pytest.mark.parametrize(
    ("config", "codes"),
    [
        ({"url": "x"}, []),
        ({"url": "x", "width": 5, "tags": ["a"]}, []),
        ({"url": "{{ input.u }}", "width": "{{ input.w }}", "tags": ["{{ input.t }}"]}, []),
        ({}, ["missing_config"]),
        ({"url": "x", "width": "wide"}, ["bad_config"]),
        ({"url": "x", "tags": [1]}, ["bad_config"]),
        ({"url": "x", "widht": 5}, ["unknown_config"]),
        ({"url": 7, "width": "{{ input.w }}"}, ["bad_config"]),
    ],
    ids=str,
)
def test_a_typed_config_is_checked_where_its_literal_values_do_not_fit(
    kind: Any, config: dict[str, Any], codes: list[str]
):
    problems = problems_in("resize", config, checks=typed(kind).config_checks())
    assert [code for code, _, _ in problems] == codes


def test_a_replaced_handler_takes_any_config():
    page = {"id": "page", "handler": "http_request", "config": {"anything": 1}}
    run = testing.run({"name": "w", "nodes": [page]}, handlers={"call_external_service": {"a": 1}})
    assert run.result.completed


@pytest.mark.parametrize("name", ["llm", "llm_service"])
def test_a_built_in_handler_is_replaced_under_each_of_its_names(name: str):
    ask = {"id": "a", "handler": "call_llm", "config": {"prompt": "Hi", "model": "m"}}
    run = testing.run({"name": "w", "nodes": [ask]}, handlers={name: {"response": "Hello"}})
    assert run.result.outputs == {"a": {"response": "Hello"}}
    assert run.calls["llm_service"][0].config["prompt"] == "Hi"


def test_registered_handlers_keep_their_check_when_tests_record_their_calls():
    registry = typed(ResizeStruct)
    resize = registry.get("resize")
    assert isinstance(resize, Handler)
    assert list(resize.config_faults({"url": "x"})) == []
    problems: list[Problem] = problems_of(
        workflow({"id": "a", "handler": "resize", "config": {"width": 1}}),
        handlers=registry.defaults(),
        config_rules=ConfigRules(registry.config_checks()),
    )
    assert [problem.message for problem in problems] == ['ResizeStruct needs "url" in the config']
