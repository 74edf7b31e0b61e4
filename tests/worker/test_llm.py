import asyncio
import json
from typing import Any, ClassVar

import msgspec
import pytest
from aiohttp import web

from penstock.config import LlmProvider, Settings
from penstock.errors import HandlerError, Retryable, Terminal
from penstock.worker.handlers.http import HttpHandler
from penstock.worker.handlers.llm import LlmHandler
from tests.worker.servers import Answer, Server, always, context, serving

KEY = "sk-canary-0123456789"
ASK = {"prompt": "Hello", "model": "m1"}
PERSON = {
    "type": "object",
    "required": ["age"],
    "properties": {"age": {"type": "integer", "maximum": 150}, "name": {"type": "string"}},
}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "required": ["city"],
            "properties": {"city": {"type": "string"}},
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "get_time"}}


def reply(content: Any, **fields: Any) -> Answer:
    return always(**completion(content, **fields))


def completion(content: Any, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """The response of a server that speaks OpenAI's protocol."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": finish_reason,
    }
    usage = {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": None},
    }
    answer = {"model": "m1-2026", "choices": [choice], "usage": usage}
    return {"text": json.dumps(answer), "content_type": "application/json"}


def replies(*responses: dict[str, Any]) -> Answer:
    """The n-th request gets the n-th response."""
    left = list(responses)

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(**left.pop(0))

    return answer


def calling(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    """A tool call in a reply."""
    function = {"name": name, "arguments": arguments}
    return {"id": "call_a", "type": "function", "function": function, **fields}


async def ask(
    answer: Answer, config: dict[str, Any], **provider: Any
) -> tuple[dict[str, Any], Server]:
    async with serving(answer) as server:
        providers = {
            "default": LlmProvider(**{"base_url": f"{server.url}/v1", "api_key": KEY, **provider})
        }
        settings = Settings(llm_providers=providers)
        handler = LlmHandler(settings, HttpHandler(settings))
        try:
            return await handler(config, context()), server
        finally:
            await handler.close()


def asked(answer: Answer, config: dict[str, Any], **provider: Any) -> dict[str, Any]:
    return asyncio.run(ask(answer, config, **provider))[0]


def sent(config: dict[str, Any], **provider: Any) -> tuple[web.Request, dict[str, Any]]:
    _, server = asyncio.run(ask(reply("{}"), config, **provider))
    return server.requests[0], json.loads(server.bodies[0])


def failed(
    kind: type[HandlerError], answer: Answer, config: dict[str, Any], **provider: Any
) -> HandlerError:
    with pytest.raises(kind) as raised:
        asked(answer, config, **provider)
    assert KEY not in repr([str(raised.value), raised.value.detail, raised.value.args])
    return raised.value


def refused(config: dict[str, Any], settings: Settings | None = None) -> str:
    settings = settings or Settings(
        llm_providers={"default": LlmProvider("http://127.0.0.1:1/v1", KEY)}
    )
    with pytest.raises(Terminal) as raised:
        asyncio.run(LlmHandler(settings, HttpHandler(settings))(config, context()))
    return str(raised.value)


def test_a_prompt_is_answered():
    assert asked(reply("Hi!"), ASK) == {
        "response": "Hi!",
        "model": "m1-2026",
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": None},
        },
        "finish_reason": "stop",
        "parsed": None,
        "tool_calls": [],
    }


def test_the_request_is_what_openai_compatible_servers_read():
    request, body = sent({**ASK, "system": "Be brief.", "temperature": 0.5, "max_tokens": 100})
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Idempotency-Key"] == "e1:n1"
    assert body == {
        "model": "m1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        "temperature": 0.5,
        "max_tokens": 100,
    }


def test_messages_are_sent_as_they_are():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": None},
    ]
    assert sent({"messages": messages, "model": "m1"})[1]["messages"] == messages


def test_a_prompt_that_is_not_text_is_sent_as_json():
    assert sent({"prompt": {"a": 1}, "model": "m1"})[1]["messages"] == [
        {"role": "user", "content": '{"a":1}'}
    ]


def test_an_answer_in_parts_is_joined():
    assert (
        asked(reply([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), ASK)[
            "response"
        ]
        == "ab"
    )


def test_an_answer_without_text_is_empty():
    assert asked(reply(None), ASK)["response"] == ""


def test_other_parameters_are_passed_on():
    extra = {"seed": 7, "top_p": 0.5, "stop": ["END"], "user": None}
    body = sent({**ASK, "extra": extra})[1]
    assert body == {
        "model": "m1",
        "messages": [{"role": "user", "content": "Hello"}],
        "seed": 7,
        "top_p": 0.5,
        "stop": ["END"],
    }


def test_an_extra_parameter_can_replace_the_response_format():
    config = {**ASK, "response_schema": {}}
    assert "response_format" not in sent({**config, "extra": {"response_format": None}})[1]
    as_json = {"type": "json_object"}
    body = sent({**config, "extra": {"response_format": as_json}})[1]
    assert body["response_format"] == as_json


class TestImages:
    PNG = "data:image/png;base64,iVBORw0KGgo="

    def content(self, *parts: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": list(parts)}], "model": "m1"}

    @pytest.mark.parametrize("url", ["https://example.com/a.png", PNG])
    def test_are_sent_in_messages(self, url):
        text = {"type": "text", "text": "What is this?"}
        image = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
        assert sent(self.content(text, image))[1]["messages"][0]["content"] == [text, image]

    def test_may_be_named_by_their_address_alone(self):
        part = {"type": "image_url", "image_url": self.PNG}
        assert sent(self.content(part))[1]["messages"][0]["content"] == [
            {"type": "image_url", "image_url": {"url": self.PNG}}
        ]

    @pytest.mark.parametrize("url", ["file:///etc/passwd", "a.png", "", 7, None])
    def test_of_other_addresses_are_refused(self, url):
        text = refused(self.content({"type": "image_url", "image_url": {"url": url}}))
        assert text.startswith(
            "messages[0].content[0].image_url.url: an image needs an http or https address, "
            "or data:image/…;base64,…, not "
        )

    def test_may_have_a_limited_size(self, connections):
        url = "data:image/png;base64," + "A" * (28 * 1024 * 1024)
        error = too_large(self.content({"type": "image_url", "image_url": url}))
        assert error == (
            "messages[0].content[0]: the image has 22,020,096 bytes; the limit is 20,971,520"
        )
        part = {"type": "image_url", "image_url": url[: 26 * 1024 * 1024]}
        error = too_large(self.content(part, part, part))
        assert error.startswith("the request has 81,7")
        assert error.endswith(" bytes; the limit is 67,108,864")
        assert connections == []

    @pytest.mark.parametrize(
        ("part", "text"),
        [
            ("a", 'a part of a message must be an object with a "type", such as text or image_url'),
            ({"text": "a"}, 'a part of a message must be an object with a "type", such as '),
            ({"type": "text"}, 'a part of type text needs "text"'),
        ],
    )
    def test_and_texts_are_parts_of_a_message(self, part, text):
        assert refused(self.content(part)).startswith(f"messages[0].content[0]: {text}")


def too_large(config: dict[str, Any]) -> str:
    settings = Settings(llm_providers={"default": LlmProvider("http://127.0.0.1:1/v1", KEY)})
    with pytest.raises(Terminal) as raised:
        asyncio.run(LlmHandler(settings, HttpHandler(settings))(config, context()))
    assert raised.value.category == "too_large"
    return str(raised.value)


class TestResponseSchema:
    CONFIG: ClassVar = {**ASK, "response_schema": PERSON}

    def test_is_sent_with_the_request(self):
        with pytest.raises(Retryable):
            sent(self.CONFIG)
        _, server = asyncio.run(ask(reply('{"age": 1}'), self.CONFIG))
        wanted = {"type": "json_schema", "json_schema": {"name": "response", "schema": PERSON}}
        assert json.loads(server.bodies[0])["response_format"] == wanted

    @pytest.mark.parametrize(
        "text", ['{"age": 7}', '```json\n{"age": 7}\n```', '```\n{"age": 7}```', ' {"age": 7} ']
    )
    def test_gives_the_parsed_reply(self, text):
        output = asked(reply(text), self.CONFIG)
        assert (output["parsed"], output["response"]) == ({"age": 7}, text)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("I can't", "the reply isn't JSON: JSON is malformed: invalid character (byte 0)"),
            ("", "the reply isn't JSON: Input data was truncated"),
            (
                "{}",
                'the reply doesn\'t fit response_schema: "age" is a required property',
            ),
            (
                '{"age": "old", "name": 7}',
                (
                    'the reply doesn\'t fit response_schema: age: "old" is not of type "integer"; '
                    'name: 7 is not of type "string"'
                ),
            ),
            (
                '{"age": 200}',
                (
                    "the reply doesn't fit response_schema: "
                    "age: 200 is greater than the maximum of 150"
                ),
            ),
        ],
    )
    def test_lets_a_reply_that_does_not_fit_be_tried_again(self, text, problem):
        error = failed(Retryable, reply(text), self.CONFIG)
        assert (str(error), error.category) == (problem, "llm")
        assert error.detail["response"] == text

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "bogus"},
            5,
            {"$ref": "http://127.0.0.1:1/x.json"},
            {"$ref": "file:///etc/passwd"},
            {"$ref": "#/x"},
        ],
    )
    def test_that_cannot_be_used_is_refused_before_anything_is_sent(self, schema, connections):
        text = refused({**ASK, "response_schema": schema})
        assert text.startswith('"response_schema" isn\'t a usable JSON Schema: ')
        assert connections == []

    def test_matches_patterns_in_linear_time(self):
        schema = {"type": "string", "pattern": "^(a+)+$"}
        failed(Retryable, reply(json.dumps("a" * 50_000 + "b")), {**ASK, "response_schema": schema})
        text = refused({**ASK, "response_schema": {"pattern": "(?=a)b"}})
        assert (
            text
            == '"response_schema" isn\'t a usable JSON Schema: pattern: "(?=a)b" is not a "regex"'
        )


class TestRepairs:
    CONFIG: ClassVar = {**ASK, "response_schema": PERSON}

    def test_tell_the_model_what_is_wrong_and_add_up_the_tokens(self):
        answer = replies(completion('{"age": 200}'), completion('{"age": 20}'))
        output, server = asyncio.run(ask(answer, self.CONFIG))
        assert output["parsed"] == {"age": 20}
        assert output["usage"] == {
            "prompt_tokens": 6,
            "completion_tokens": 8,
            "total_tokens": 14,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": None},
        }

        problem = (
            "the reply doesn't fit response_schema: age: 200 is greater than the maximum of 150"
        )
        asked_again = json.loads(server.bodies[1])
        assert asked_again["messages"] == [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": '{"age": 200}'},
            {
                "role": "user",
                "content": f"This can't be used: {problem}. Reply with nothing but JSON "
                f"that fits this JSON Schema: {json.dumps(PERSON, separators=(',', ':'))}",
            },
        ]
        assert asked_again["response_format"] == json.loads(server.bodies[0])["response_format"]

    def test_have_idempotency_keys_of_their_own(self):
        answer = replies(completion("{"), completion('{"age": 20}'))
        _, server = asyncio.run(ask(answer, self.CONFIG))
        keys = [request.headers["Idempotency-Key"] for request in server.requests]
        assert keys == ["e1:n1", "e1:n1:repair-1"]

    @pytest.mark.parametrize("repairs", [0, 1, 3])
    def test_are_as_many_as_the_config_says(self, repairs):
        async def scenario() -> tuple[HandlerError, int]:
            async with serving(reply("no")) as server:
                provider = LlmProvider(f"{server.url}/v1", KEY)
                settings = Settings(llm_providers={"default": provider})
                handler = LlmHandler(settings, HttpHandler(settings))
                try:
                    await handler({**self.CONFIG, "repairs": repairs}, context())
                except Retryable as error:
                    return error, len(server.requests)
                finally:
                    await handler.close()
                raise AssertionError("a wrong reply is an error")

        error, calls = asyncio.run(scenario())
        assert calls == repairs + 1
        assert error.detail["usage"]["total_tokens"] == 7 * calls

    def test_are_not_tried_where_they_cannot_help(self):
        cut_off = replies(completion('{"age"', finish_reason="length"))
        error = failed(Retryable, cut_off, self.CONFIG)
        assert str(error) == (
            "the reply isn't JSON: Input data was truncated "
            "(it was cut off: finish_reason is 'length'; raise max_tokens)"
        )
        refusing = replies(completion(None, refusal="I won't."))
        assert str(failed(Retryable, refusing, self.CONFIG)) == "the model refused: I won't."

    def test_leave_out_a_reply_without_text(self):
        answer = replies(completion(None), completion('{"age": 20}'))
        _, server = asyncio.run(ask(answer, self.CONFIG))
        roles = [message["role"] for message in json.loads(server.bodies[1])["messages"]]
        assert roles == ["user", "user"]

    def test_of_large_replies_are_asked_for_too(self):
        large = completion(json.dumps({"age": 1, "text": "x" * 300_000}))
        answer = replies(completion("x" * 300_000), large)
        output, _ = asyncio.run(ask(answer, self.CONFIG))
        decoded = msgspec.json.decode(msgspec.json.encode(output))
        assert decoded["parsed"]["age"] == 1
        assert decoded["usage"]["total_tokens"] == 14


class TestTools:
    CONFIG: ClassVar = {**ASK, "tools": [WEATHER, CLOCK]}

    @pytest.mark.parametrize(
        ("choice", "expected"),
        [
            ("auto", "auto"),
            ("required", "required"),
            ("get_time", {"type": "function", "function": {"name": "get_time"}}),
        ],
    )
    def test_are_sent_with_the_choice(self, choice, expected):
        body = sent({**self.CONFIG, "tool_choice": choice})[1]
        assert (body["tools"], body["tool_choice"]) == ([WEATHER, CLOCK], expected)

    def test_that_are_none_are_not_sent(self):
        assert "tools" not in sent({**ASK, "tools": [], "tool_choice": "auto"})[1]

    def test_give_calls_with_their_arguments_as_values(self):
        calls = [calling("get_weather", '{"city": "Oslo"}'), calling("get_time", "", id="call_b")]
        output = asked(reply(None, tool_calls=calls, finish_reason="tool_calls"), self.CONFIG)
        assert output["tool_calls"] == [
            {"id": "call_a", "name": "get_weather", "arguments": {"city": "Oslo"}},
            {"id": "call_b", "name": "get_time", "arguments": {}},
        ]
        assert (output["response"], output["finish_reason"]) == ("", "tool_calls")

    def test_may_come_from_servers_that_give_no_ids_or_parsed_arguments(self):
        call = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
        output = asked(reply("", tool_calls=[call]), self.CONFIG)
        assert output["tool_calls"] == [
            {"id": "call_1", "name": "get_weather", "arguments": {"city": "Oslo"}}
        ]

    def test_are_called_before_an_answer_that_has_to_fit_a_schema(self):
        config = {**self.CONFIG, "response_schema": PERSON}
        output = asked(reply(None, tool_calls=[calling("get_time", "{}")]), config)
        assert output["parsed"] is None
        assert asked(reply('{"age": 2}'), config)["parsed"] == {"age": 2}

    @pytest.mark.parametrize(
        ("call", "problem"),
        [
            (
                calling("get_weather", '{"city": '),
                "the call of get_weather isn't JSON: Input data was truncated",
            ),
            (
                calling("get_weather", "{}"),
                (
                    "the call of get_weather doesn't fit the tool's parameters: "
                    '"city" is a required property'
                ),
            ),
            (calling("get_time", "[1]"), "the call of get_time must have an object as arguments"),
            (
                calling("get_wether", "{}"),
                "there is no tool 'get_wether' (known: get_weather, get_time)",
            ),
        ],
    )
    def test_that_are_called_wrongly_are_asked_for_again(self, call, problem):
        fine = calling("get_time", "{}", id="call_b")
        right = calling("get_weather", '{"city": "Oslo"}')
        answer = replies(
            completion(None, tool_calls=[call, fine]), completion(None, tool_calls=[right])
        )
        output, server = asyncio.run(ask(answer, self.CONFIG))
        assert output["tool_calls"][0]["arguments"] == {"city": "Oslo"}
        assert output["usage"]["total_tokens"] == 14
        assert json.loads(server.bodies[1])["messages"][1:] == [
            {"role": "assistant", "content": None, "tool_calls": [call, fine]},
            {
                "role": "tool",
                "tool_call_id": "call_a",
                "content": f"This call can't be carried out: {problem}. Call again.",
            },
            {
                "role": "tool",
                "tool_call_id": "call_b",
                "content": "Not carried out, because another call can't be. "
                "Repeat it with the others.",
            },
        ]
        wrong = reply(None, tool_calls=[call])
        assert str(failed(Retryable, wrong, self.CONFIG)) == problem

    def test_get_their_results_in_messages(self):
        """As an output of `llm_service` has the calls, and as the protocol has them."""
        call = calling("get_weather", '{"city":"Oslo"}')
        own = {"id": "call_a", "name": "get_weather", "arguments": {"city": "Oslo"}}
        expected = [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_a", "content": '{"celsius":-3}'},
        ]
        for spelling in (call, own):
            messages = [
                {"role": "user", "content": "Weather?"},
                {"role": "assistant", "tool_calls": [spelling]},
                {"role": "tool", "tool_call_id": "call_a", "content": {"celsius": -3}},
            ]
            config = {"messages": messages, "model": "m1", "tools": [WEATHER]}
            assert sent(config)[1]["messages"] == expected

    @pytest.mark.parametrize(
        ("config", "text"),
        [
            ({"tools": "get_weather"}, '"tools" must be a list, not text'),
            (
                {"tools": [{"name": "a"}]},
                (
                    'tools[0]: a tool has the form {"type": "function", '
                    '"function": {"name": …, "parameters": …}}'
                ),
            ),
            (
                {"tools": [{"type": "function", "function": {"name": "get weather"}}]},
                (
                    'tools[0].function.name: "name" of a tool must be up to 64 letters, digits, '
                    '_ and -, not "get weather"'
                ),
            ),
            (
                {"tools": [CLOCK, CLOCK]},
                'tools[1].function.name: two tools have the name "get_time"',
            ),
            (
                {"tools": [CLOCK], "tool_choice": "get_weather"},
                "tool_choice is 'get_weather'; allowed: auto, none, required, get_time",
            ),
            (
                {
                    "tools": [
                        {
                            "type": "function",
                            "function": {"name": "a", "parameters": {"type": "bogus"}},
                        }
                    ]
                },
                (
                    'tools[0].function.parameters: "parameters" isn\'t a usable JSON Schema: '
                    'type: "bogus" isn\'t a type; use string, number, integer, boolean, object,'
                    " array or null"
                ),
            ),
        ],
    )
    def test_that_are_described_wrongly_are_refused(self, config, text):
        assert refused({**ASK, **config}) == text


class TestFailures:
    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_that_may_pass_are_tried_again(self, status):
        error = failed(Retryable, always(status=status, headers={"Retry-After": "9"}), ASK)
        assert isinstance(error, Retryable)
        assert (error.after, error.category) == (9.0, "llm")
        assert str(error).endswith(f"/v1/chat/completions answered {status}")

    def test_that_stay_fail_the_node_and_hide_a_key_that_the_server_quotes(self):
        quoting = always(status=401, text="x" * 2040 + f"wrong key {KEY}", headers={"X-Key": KEY})
        error = failed(Terminal, quoting, ASK)
        assert error.detail["status_code"] == 401
        assert "sk-" not in error.detail["body"]

    def test_a_key_that_the_model_repeats_is_hidden(self):
        assert asked(reply(f"Your key is {KEY}"), ASK)["response"] == "Your key is ***"

    def test_a_placeholder_for_a_key_does_not_spoil_the_answer(self):
        assert asked(reply("extra"), ASK, api_key="x")["response"] == "extra"

    @pytest.mark.parametrize(
        "body", ["", "<html>", "[]", '{"choices": []}', '{"choices": [{"message": "x"}]}']
    )
    def test_an_answer_that_is_no_completion_is_tried_again(self, body):
        error = failed(Retryable, always(text=body), ASK)
        assert (str(error), error.category) == ("the answer isn't a chat completion", "llm")

    def test_the_network_is_tried_again(self):
        settings = Settings(llm_providers={"default": LlmProvider("http://127.0.0.1:1/v1", KEY)})
        with pytest.raises(
            Retryable, match=r"^POST http://127\.0\.0\.1:1/v1/chat/completions: no connection to "
        ) as raised:
            asyncio.run(asked_once(settings))
        assert raised.value.category == "llm"
        assert KEY not in str(raised.value)


async def asked_once(settings: Settings) -> None:
    handler = LlmHandler(settings, HttpHandler(settings))
    try:
        await handler(ASK, context())
    finally:
        await handler.close()


class TestProviders:
    def test_without_a_key_say_which_variable_to_set(self):
        assert refused(ASK, Settings()) == (
            "the LLM provider 'default' has no API key: "
            "set PENSTOCK_LLM_API_KEY in the worker's environment, "
            "or use --mock (PENSTOCK_MOCK_SERVICES=1)"
        )
        settings = Settings(
            llm_providers={"my-openai": LlmProvider()}, llm_default_provider="my-openai"
        )
        assert "set PENSTOCK_LLM_MY_OPENAI_API_KEY in" in refused(ASK, settings)

    def test_name_the_variable_of_openai_where_it_is_read(self, tmp_path):
        settings = Settings.load(environ={}, directory=tmp_path)
        assert refused(ASK, settings) == (
            "the LLM provider 'default' has no API key: "
            "set OPENAI_API_KEY (or PENSTOCK_LLM_API_KEY) in the worker's environment, "
            "or use --mock (PENSTOCK_MOCK_SERVICES=1)"
        )

    def test_of_ones_own_need_no_key(self):
        request, _ = sent(ASK, api_key=None)
        assert "Authorization" not in request.headers

    def test_that_need_a_key_after_all_say_which_variable_to_set(self):
        error = failed(Terminal, always(status=401), ASK, api_key=None)
        assert str(error).endswith(
            "answered 401 (set PENSTOCK_LLM_API_KEY in the worker's environment, "
            "or use --mock (PENSTOCK_MOCK_SERVICES=1))"
        )

    def test_that_are_unknown_are_refused_with_the_known_ones(self):
        settings = Settings(
            llm_providers={"default": LlmProvider(), "groq": LlmProvider("https://groq.test/v1")}
        )
        assert refused({**ASK, "provider": "grok"}, settings) == (
            "there is no LLM provider 'grok'; did you mean 'groq'? (known: default, groq)"
        )

    def test_have_a_default_model(self):
        assert sent({"prompt": "a"}, models=("m7", "m8"))[1]["model"] == "m7"

    def test_offer_only_the_models_they_name(self):
        settings = Settings(
            llm_providers={"default": LlmProvider("http://127.0.0.1:1/v1", KEY, ("llama3", "qwen"))}
        )
        assert refused({**ASK, "model": "lama3"}, settings) == (
            "the LLM provider 'default' has no model 'lama3'; "
            "did you mean 'llama3'? (known: llama3, qwen)"
        )

    def test_may_be_on_a_private_address_which_stays_closed_to_documents(self):
        """Also while the provider's connection is open, which a shared pool would hand out."""

        async def scenario() -> int:
            async with serving(reply("Hi!")) as server:
                settings = Settings(llm_providers={"default": LlmProvider(f"{server.url}/v1", KEY)})
                http = HttpHandler(settings)
                handler = LlmHandler(settings, http)
                try:
                    await handler(ASK, context())
                    with pytest.raises(
                        Terminal, match=r"the address 127\.0\.0\.1 is refused: loopback"
                    ):
                        await http({"url": f"{server.url}/v1/models"}, context())
                finally:
                    await handler.close()
                    await http.close()
                return len(server.requests)

        assert asyncio.run(scenario()) == 1

    def test_cannot_lead_to_another_private_address(self, connections):
        answer = always(status=307, headers={"Location": "http://127.0.0.2/"})
        assert "127.0.0.2 is refused: loopback" in str(failed(Terminal, answer, ASK))
        assert connections == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({}, "give either prompt or messages"),
        ({"prompt": "a", "messages": []}, "give either prompt or messages"),
        ({"prompt": "a"}, "the config has no model"),
        ({"messages": [], "model": "m"}, '"messages" is empty'),
        (
            {"messages": [{"content": "a"}], "model": "m"},
            'messages[0]: a message needs a "role": system, user, assistant or tool',
        ),
        (
            {"messages": [{"role": "user"}], "model": "m"},
            'messages[0]: a message needs "content"',
        ),
        (
            {"messages": ["Hello"], "model": "m"},
            "messages[0]: a message must be an object with role and content, not text",
        ),
        ({**ASK, "model": 7}, '"model" must be text, not a number'),
        ({**ASK, "temperature": "hot"}, '"temperature" must be a number, not text'),
        ({**ASK, "repairs": 1.5}, '"repairs" must be a whole number, not 1.5'),
        ({**ASK, "repairs": 6}, '"repairs" must be at most 5, not 6'),
        (
            {**ASK, "max_token": 7},
            (
                "the config has no key 'max_token'; did you mean 'max_tokens'? (known: "
                "prompt, messages, model, system, temperature, max_tokens, "
                "response_schema, repairs, tools, tool_choice, extra, provider)"
            ),
        ),
        (
            {**ASK, "logprobs": True},
            (
                "the config has no key 'logprobs'; parameters that only the model knows "
                'go into "extra" (known: prompt, messages, model, system, temperature, max_tokens, '
                "response_schema, repairs, tools, tool_choice, extra, provider)"
            ),
        ),
        (
            {**ASK, "extra": {"model": "m2"}},
            'extra.model: "extra" can\'t have "model": the config has a key for it',
        ),
        (
            {**ASK, "extra": {"stream": True}},
            'extra.stream: "extra" can\'t have "stream": the answer is read as a whole',
        ),
        ({**ASK, "extra": ["a"]}, '"extra" must be an object, not a list'),
    ],
)
def test_a_bad_config_is_refused_with_what_is_wrong(config, text):
    assert refused(config) == text
