import asyncio
import json
from typing import Any, ClassVar

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
    "properties": {"age": {"type": "integer", "maximum": 150}},
}


def reply(content: Any, **fields: Any) -> Answer:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return always(
        text=json.dumps({"model": "m1-2026", "choices": [choice], "usage": usage, **fields}),
        content_type="application/json",
    )


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
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        "finish_reason": "stop",
        "parsed": None,
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
                'the reply doesn\'t fit response_schema: the reply: "age" is a required property',
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
        assert (str(error), error.category, error.detail) == (problem, "llm", {"response": text})

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
        assert text.startswith("response_schema isn't a usable JSON schema: ")
        assert connections == []

    def test_matches_patterns_in_linear_time(self):
        schema = {"type": "string", "pattern": "^(a+)+$"}
        failed(Retryable, reply(json.dumps("a" * 50_000 + "b")), {**ASK, "response_schema": schema})
        text = refused({**ASK, "response_schema": {"pattern": "(?=a)b"}})
        assert text == 'response_schema isn\'t a usable JSON schema: "(?=a)b" is not a "regex"'


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
        (
            {"messages": [], "model": "m"},
            "messages must be a list of objects with role and content",
        ),
        (
            {"messages": [{"content": "a"}], "model": "m"},
            "messages must be a list of objects with role and content",
        ),
        ({**ASK, "model": 7}, "model must be text"),
        ({**ASK, "temperature": "hot"}, "temperature and max_tokens must be numbers"),
        (
            {**ASK, "max_token": 7},
            (
                "the config has no key 'max_token'; did you mean 'max_tokens'? (known: "
                "prompt, messages, model, system, temperature, max_tokens, "
                "response_schema, provider)"
            ),
        ),
    ],
)
def test_a_bad_config_is_refused_with_what_is_wrong(config, text):
    assert refused(config) == text
