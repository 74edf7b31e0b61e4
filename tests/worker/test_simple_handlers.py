import asyncio
import subprocess
import sys
from typing import Any, ClassVar

import msgspec
import pytest

from penstock.config import Settings
from penstock.errors import HandlerError, Retryable, Terminal
from penstock.sandbox import InlineSandbox
from penstock.worker.handlers import builtin
from penstock.worker.handlers.mock import mock_http, mock_llm
from penstock.worker.handlers.simple import echo, fail, noop, sleep
from penstock.worker.handlers.transform import TransformHandler
from tests.worker.servers import context

transform = TransformHandler(InlineSandbox())


def run(handler: Any, config: dict[str, Any], **ctx: Any) -> Any:
    output = asyncio.run(handler(config, context(**ctx)))
    return msgspec.json.decode(output) if isinstance(output, msgspec.Raw) else output


def failed(kind: type[HandlerError], handler: Any, config: dict[str, Any], **ctx: Any) -> str:
    with pytest.raises(kind) as raised:
        run(handler, config, **ctx)
    return str(raised.value)


def evaluated(expression: str, **inputs: Any) -> Any:
    return run(
        transform,
        {"expression": expression},
        inputs=[(name, msgspec.json.encode(value)) for name, value in inputs.items()],
    )["result"]


def test_noop_says_that_it_ran():
    assert run(noop, {"any": 1}) == {"status": "ok"}


def test_echo_gives_its_config():
    assert run(echo, {"any": [1]}) == {"any": [1]}


def test_sleep_says_how_long_it_slept():
    assert run(sleep, {"seconds": 0}) == {"slept_seconds": 0}
    assert run(sleep, {}) == {"slept_seconds": 0}


@pytest.mark.parametrize("seconds", [-1, "1", True, None, float("inf"), float("nan")])
def test_sleep_refuses_what_is_no_duration(seconds):
    assert (
        failed(Terminal, sleep, {"seconds": seconds})
        == f"seconds is {seconds!r}; allowed: a number, 0 or more"
    )


def test_fail_fails_as_often_as_it_is_told():
    config = {"message": "not yet", "times": 2}
    assert failed(Retryable, fail, config, attempt=1) == "not yet"
    assert failed(Retryable, fail, config, attempt=2) == "not yet"
    assert run(fail, config, attempt=3) == {"attempt": 3}


def test_fail_always_fails_without_a_number():
    assert failed(Retryable, fail, {}, attempt=99) == "failed on purpose"


class TestTransform:
    def test_gives_the_value(self):
        assert run(transform, {"value": {"a": 1}}) == {"result": {"a": 1}}
        assert run(transform, {"value": None}) == {"result": None}

    @pytest.mark.parametrize("config", [{"value": 1, "expression": "1"}, {"value": 1, "input": 1}])
    def test_takes_one_of_value_expression_and_input(self, config):
        assert failed(Terminal, transform, config) == "give only one of value, expression and input"

    def test_gives_its_parents_outputs_without_a_config(self):
        assert run(transform, {}, inputs=[("a", b'{"x":1}')]) == {"result": {"a": {"x": 1}}}

    @pytest.mark.parametrize(
        ("config", "result"),
        [
            ({"input": {"a": 1}}, {"a": 1}),
            ({"input": None}, None),
            ({"input": "Abc", "transform_type": "uppercase"}, "ABC"),
            ({"input": "Abc", "transform_type": "lowercase"}, "abc"),
            ({"input": '{"a": [1]}', "transform_type": "json_parse"}, {"a": [1]}),
            ({"input": {"a": [1]}, "transform_type": "json_stringify"}, '{"a":[1]}'),
        ],
    )
    def test_transforms_an_input_by_name(self, config, result):
        assert run(transform, config) == {"result": result}

    @pytest.mark.parametrize("kind", ["eval", "__import__('os')", 7, ["uppercase"]])
    def test_refuses_a_transform_that_it_does_not_know(self, kind):
        assert "allowed: uppercase" in failed(
            Terminal, transform, {"input": "x", "transform_type": kind}
        )

    def test_evaluates_an_expression_over_the_parents(self):
        assert evaluated("a.n + 1", a={"n": 41}) == 42
        assert evaluated('nodes["b c"].n + inputs["b c"].n', **{"b c": {"n": 2}}) == 4
        items = [{"id": 1, "ok": True}, {"id": 2, "ok": False}]
        assert evaluated("a.items.filter(i, i.ok).map(i, i.id)", a={"items": items}) == [1]
        assert evaluated("size(nodes)", a=1, b=2) == 2

    def test_finds_parents_with_reserved_names_in_nodes(self):
        assert (
            evaluated('nodes["in"] + nodes.int + nodes["nodes"]', **{"in": 1, "int": 2, "nodes": 3})
            == 6
        )

    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("timestamp('2026-01-02T03:04:05Z')", "2026-01-02T03:04:05Z"),
            ("duration('90s')", "90s"),
            ("b'abc'", "YWJj"),
            ("1u", 1),
            ("{1: true, 'a': null}", {"1": True, "a": None}),
            ("[1.5, 'x']", [1.5, "x"]),
        ],
    )
    def test_gives_json(self, expression, value):
        assert evaluated(expression) == value

    def test_takes_integers_beyond_64_bits_as_numbers(self):
        assert evaluated("a.small + 1", a={"small": 1, "large": 2**70}) == 2
        assert evaluated("a.large", a={"large": 2**70}) == float(2**70)

    @pytest.mark.parametrize(
        ("expression", "text"),
        [
            (
                "a.n +",
                (
                    "the expression 'a.n +' can't be read: "
                    "Syntax error: mismatched input '<EOF>' expecting "
                ),
            ),
            (
                "zz.n",
                "the expression 'zz.n' can't be read: 'zz.n' is unknown (parents of this node: a)",
            ),
            ("a.zz", "the expression 'a.zz' can't be evaluated: "),
            ("1.0 / 0.0", "the result of the expression is inf, which JSON can't represent"),
            (
                "a.m.all(x, a.m.all(y, true))",
                "the expression 'a.m.all(x, a.m.all(y, true))' can't be evaluated: ",
            ),
        ],
    )
    def test_says_what_is_wrong_with_an_expression(self, expression, text):
        inputs = [("a", msgspec.json.encode({"n": 1, "m": [0] * 150}))]
        with pytest.raises(Terminal) as raised:
            run(transform, {"expression": expression}, inputs=inputs)
        assert str(raised.value).startswith(text)
        assert raised.value.category == "expression"

    def test_refuses_an_expression_that_is_no_text(self):
        assert failed(Terminal, transform, {"expression": 7}) == "expression must be text"


class TestMocks:
    def test_answer_the_same_for_the_same_config_and_are_marked(self):
        config = {"url": "https://joe:pw@api.test/users/7?token=x", "params": {"lang": "en"}}
        first = run(mock_http, config)
        assert first == run(mock_http, config)
        assert first["mock"] is True
        assert first["status_code"] == 200
        assert first["url"] == "https://api.test/users/7?token=***"
        assert first != run(mock_http, {**config, "params": {"lang": "de"}})

    def test_have_the_shape_of_a_real_answer(self):
        assert {"status_code", "headers", "data", "url", "elapsed_ms"} < run(
            mock_http, {"url": "http://a.test"}
        ).keys()
        shape = {"response", "model", "usage", "finish_reason", "parsed", "tool_calls"}
        assert shape < run(mock_llm, {"prompt": "a"}).keys()

    def test_echo_what_was_sent_and_have_usual_fields(self):
        data = run(mock_http, {"url": "http://a.test", "json": {"name": "Ann", "extra": 1}})["data"]
        assert (data["name"], data["extra"]) == ("Ann", 1)
        assert {
            "id",
            "title",
            "status",
            "result",
            "items",
            "text",
            "value",
            "message",
        } <= data.keys()

    def test_answer_with_an_expected_status(self):
        assert (
            run(mock_http, {"url": "http://a.test", "expect_status": [404, 201]})["status_code"]
            == 201
        )

    def test_refuse_what_the_real_ones_refuse(self):
        assert failed(Terminal, mock_http, {"url": 7}).startswith("url must be text")
        both = {"prompt": "a", "messages": [{"role": "user", "content": "b"}]}
        assert failed(Terminal, mock_llm, both) == "give either prompt or messages"

    def test_repeat_the_prompt(self):
        output = run(mock_llm, {"prompt": "Write a letter", "model": "m"})
        assert (output["response"], output["model"], output["parsed"]) == (
            "Mock LLM response to: Write a letter",
            "m",
            None,
        )

    @pytest.mark.parametrize(
        "schema",
        [
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
            },
            {"type": "array", "items": {"type": "integer", "minimum": 3}, "minItems": 2},
            {"type": "integer", "exclusiveMinimum": 4, "multipleOf": 5},
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.1},
            {"type": "integer", "maximum": -3},
            {"type": "string", "minLength": 10, "maxLength": 12},
            {"type": "string", "format": "date-time"},
            {"enum": ["x", "y"]},
            {"const": 7},
            {"type": ["null", "string"]},
            {"type": "boolean"},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {
                "allOf": [
                    {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                    {"required": ["b"]},
                ],
                "type": "object",
            },
            {
                "$ref": "#/$defs/x",
                "$defs": {
                    "x": {"type": "object", "properties": {"y": {"$ref": "#/$defs/y"}}},
                    "y": {},
                },
            },
            {
                "type": "object",
                "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}},
                "required": ["n"],
            },
            True,
            {},
        ],
    )
    def test_fit_the_response_schema(self, schema):
        output = run(mock_llm, {"prompt": "a", "response_schema": schema})
        assert msgspec.json.decode(output["response"]) == output["parsed"]

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "string", "pattern": "^[0-9]+$"},
            {
                "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}},
                "required": ["a", "b"],
                "type": "object",
            },
            False,
        ],
    )
    def test_say_so_when_no_simple_value_fits(self, schema):
        text = failed(Terminal, mock_llm, {"prompt": "a", "response_schema": schema})
        assert text.startswith(
            "no mock for the response_schema: the reply doesn't fit response_schema: "
        )
        assert text.endswith(
            "; give the schema a `default` or `examples` where a simple value doesn't fit"
        )


class TestMockedTools:
    TOOLS: ClassVar = [
        {
            "type": "function",
            "function": {
                "name": name,
                "parameters": {"required": ["city"], "properties": {"city": {"type": "string"}}},
            },
        }
        for name in ("get_weather", "get_map")
    ]
    CONFIG: ClassVar = {"prompt": "Weather?", "tools": TOOLS}

    def test_are_called_with_arguments_that_fit(self):
        output = run(mock_llm, self.CONFIG)
        assert output["tool_calls"] == [
            {"id": "call_mock_1", "name": "get_weather", "arguments": {"city": "mock"}}
        ]
        assert (output["response"], output["finish_reason"]) == ("", "tool_calls")
        assert output["usage"] == {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}

    def test_are_called_as_the_choice_says(self):
        (call,) = run(mock_llm, {**self.CONFIG, "tool_choice": "get_map"})["tool_calls"]
        assert call["name"] == "get_map"
        assert run(mock_llm, {**self.CONFIG, "tool_choice": "none"})["tool_calls"] == []

    def test_are_not_called_again_after_their_answer(self):
        call = run(mock_llm, self.CONFIG)["tool_calls"]
        messages = [
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {"role": "assistant", "tool_calls": call},
            {"role": "tool", "tool_call_id": "call_mock_1", "content": {"celsius": -3}},
        ]
        output = run(mock_llm, {"messages": messages, "tools": self.TOOLS})
        assert output["tool_calls"] == []
        assert output["response"] == 'Mock LLM response to: {"celsius":-3}'

    def test_without_parameters_are_called_without_arguments(self):
        tools = [{"type": "function", "function": {"name": "now"}}]
        (call,) = run(mock_llm, {"prompt": "a", "tools": tools})["tool_calls"]
        assert call["arguments"] == {}

    def test_need_parameters_that_a_simple_value_fits(self):
        pattern = {"properties": {"a": {"pattern": "^[0-9]+$"}}, "required": ["a"]}
        tools = [{"type": "function", "function": {"name": "f", "parameters": pattern}}]
        text = failed(Terminal, mock_llm, {"prompt": "a", "tools": tools})
        assert text.startswith("no mock for the parameters of 'f': the reply doesn't fit ")


def test_a_mock_answers_a_message_with_an_image():
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": "https://example.com/a.png"},
    ]
    output = run(mock_llm, {"messages": [{"role": "user", "content": parts}]})
    assert output["response"] == "Mock LLM response to: What is this?"


class TestBuiltin:
    NAMES = (
        "call_external_service",
        "echo",
        "fail",
        "llm_service",
        "noop",
        "penstock.aggregate",
        "penstock.compute",
        "penstock.notify",
        "penstock.validate",
        "sleep",
        "transform",
    )

    def test_has_every_handler_that_runs_on_workers(self):
        assert tuple(sorted(builtin(Settings()))) == self.NAMES

    def test_has_mocks_when_asked(self):
        handlers = builtin(Settings(mock_services=True))
        assert (handlers["call_external_service"], handlers["llm_service"]) == (mock_http, mock_llm)

    def test_costs_no_large_import(self):
        code = (
            "import sys; from penstock.config import Settings; "
            "from penstock.worker.handlers import builtin;"
            "builtin(Settings()); "
            "print({'aiohttp', 'yarl', 'cel_expr_python', 'jsonschema_rs'} & sys.modules.keys())"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "set()"
