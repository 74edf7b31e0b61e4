"""`llm_service`: a chat completion from any OpenAI-compatible endpoint that the operator has named.

The output is `{response, model, usage, finish_reason, parsed}`. With `response_schema` the reply
has to be JSON that fits the schema: `parsed` has it, and a reply that doesn't fit is another
attempt's chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from penstock.config import OPENAI_URL, LlmProvider, Settings, key_variable, nearest
from penstock.definition.schema import UNUSABLE, cheap_schema, schema_problems
from penstock.errors import Retryable, Terminal
from penstock.sandbox import Job, Overrun, schema_problems_in
from penstock.sandbox import call as run_job
from penstock.worker.context import Context
from penstock.worker.handlers.http import HttpHandler, bad_config, check_keys, is_number
from penstock.worker.handlers.http_exchange import (
    INLINE_BYTES,
    READ_SECONDS,
    Request,
    Response,
    failure,
)
from penstock.worker.redaction import redact

if TYPE_CHECKING:
    from penstock.worker.handlers.http_client import HttpClient

KEYS = (
    "prompt",
    "messages",
    "model",
    "system",
    "temperature",
    "max_tokens",
    "response_schema",
    "provider",
)
UNAUTHORIZED = frozenset({401, 403})
EXCERPT_CHARACTERS = 2000
KEY_CHARACTERS_MIN = 8
FUNCTION = "penstock.worker.handlers.llm:run"


@dataclass(frozen=True, slots=True)
class Call:
    """What a config asks for. `schema` is JSON text, so that a validator can be kept by it."""

    messages: list[dict[str, Any]]
    model: str | None
    options: dict[str, Any]
    schema: bytes | None
    provider: str | None


class LlmHandler:
    def __init__(self, settings: Settings, http: HttpHandler) -> None:
        self._providers = settings.llm_providers
        self._default = settings.llm_default_provider
        self._http = http
        self._clients: dict[str, HttpClient] = {}

    async def __call__(self, config: dict[str, Any], ctx: Context) -> Any:
        call = read_config(config, ctx)
        await self._check_schema(call.schema, ctx)
        await self._http.load_client()
        name = call.provider or self._default
        provider = self._provider(name)
        model = _model(call.model, name, provider)
        request = _request(call, model, provider, ctx)
        response = _without_key(await self._client(name, provider).send(request), provider)
        if not request.accepts(response.status_code):
            lacks_key = response.status_code in UNAUTHORIZED and not provider.api_key
            raise failure(request, response, f" ({_key_hint(name)})" if lacks_key else "")
        if len(response.body) <= INLINE_BYTES and _is_checked_fast(call.schema, response.body):
            return _output(response, call.schema, model)
        return await self._read_large(response, call.schema, model, ctx)

    async def _check_schema(self, schema: bytes | None, ctx: Context) -> None:
        """Before the model is asked: a call costs money."""
        if schema is None:
            return
        problems = await schema_problems_in(
            self._http.sandbox, msgspec.Raw(schema), None, ctx.workflow
        )
        unusable = [problem.message for problem in problems if problem.code == "bad_schema"]
        if unusable:
            raise bad_config(
                f"response_schema isn't a usable JSON schema: {unusable[0].removeprefix(UNUSABLE)[:300]}"
            )

    async def _read_large(
        self, response: Response, schema: bytes | None, model: str, ctx: Context
    ) -> msgspec.Raw:
        parts = [msgspec.msgpack.encode((model, schema)), *response.to_parts()]
        try:
            answer = await run_job(
                self._http.sandbox, Job(FUNCTION, parts, turn=ctx.workflow, seconds=READ_SECONDS)
            )
        except Overrun as error:
            message = f"the answer has {len(response.body):,} bytes and can't be read: {error}"
            raise Terminal(message, category="too_large") from None
        output, failed = msgspec.msgpack.decode(
            answer, type=tuple[bytes | None, tuple[str, Any] | None]
        )
        if failed is not None:
            raise Retryable(failed[0], category="llm", detail=failed[1])
        return msgspec.Raw(output or b"null")

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    def _provider(self, name: str) -> LlmProvider:
        provider = self._providers.get(name)
        if provider is None:
            known = ", ".join(sorted(self._providers))
            raise bad_config(
                f"there is no LLM provider '{name}'{nearest(name, self._providers)} (known: {known})"
            )
        # A server of one's own often has no keys; OpenAI's always has.
        if not provider.api_key and provider.base_url == OPENAI_URL:
            raise Terminal(
                f"the LLM provider '{name}' has no API key: {_key_hint(name)}", category="llm"
            )
        return provider

    def _client(self, name: str, provider: LlmProvider) -> HttpClient:
        """The operator chose the host, so it may be a private one: for this client only, not for documents' calls."""
        if name not in self._clients:
            self._clients[name] = self._http.new_client(urlsplit(provider.base_url).hostname or "")
        return self._clients[name]


def run(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The job that reads a large answer, in the sandbox: the output as JSON, or why there is none."""
    model, schema = msgspec.msgpack.decode(parts[0], type=tuple[str, bytes | None])
    try:
        answer = (msgspec.json.encode(_output(Response.from_parts(parts[1:]), schema, model)), None)
    except Retryable as error:
        yield msgspec.msgpack.encode((None, (str(error), error.detail)))
    else:
        yield msgspec.msgpack.encode(answer)


def read_config(config: Mapping[str, Any], ctx: Context) -> Call:
    check_keys(config, KEYS, ctx)
    options = {
        name: config[name] for name in ("temperature", "max_tokens") if config.get(name) is not None
    }
    if not all(is_number(value) for value in options.values()):
        raise bad_config("temperature and max_tokens must be numbers")
    for name in ("model", "provider", "system"):
        if not isinstance(config.get(name), (str, type(None))):
            raise bad_config(f"{name} must be text")
    schema = config.get("response_schema")
    encoded = None if schema is None else msgspec.json.encode(schema)
    return Call(
        _messages(config),
        config.get("model") or None,
        options,
        encoded,
        config.get("provider") or None,
    )


def _messages(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    prompt, messages = config.get("prompt"), config.get("messages")
    if (prompt is None) == (messages is None):
        raise bad_config("give prompt or messages, one of them")
    if messages is None:
        text = prompt if isinstance(prompt, str) else msgspec.json.encode(prompt).decode()
        messages = [{"role": "user", "content": text}]
    elif (
        not isinstance(messages, list)
        or not messages
        or not all(_is_message(item) for item in messages)
    ):
        raise bad_config("messages must be a list of objects with role and content")
    system = config.get("system")
    return [{"role": "system", "content": system}, *messages] if system else messages


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("role"), str) and "content" in item


def _model(asked: str | None, name: str, provider: LlmProvider) -> str:
    model = asked or next(iter(provider.models), None)
    if model is None:
        raise bad_config("the config has no model")
    if provider.models and model not in provider.models:
        hint = nearest(model, provider.models)
        known = ", ".join(provider.models)
        raise bad_config(f"the LLM provider '{name}' has no model '{model}'{hint} (known: {known})")
    return model


def _request(call: Call, model: str, provider: LlmProvider, ctx: Context) -> Request:
    payload = {"model": model, "messages": call.messages, **call.options}
    if call.schema is not None:
        wanted = {"name": "response", "schema": msgspec.Raw(call.schema)}
        payload["response_format"] = {"type": "json_schema", "json_schema": wanted}
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if ctx.idempotency_key:
        headers["Idempotency-Key"] = quote(ctx.idempotency_key, safe=":/@[]")
    if provider.api_key:
        headers["Authorization"] = f"Bearer {provider.api_key}"
    url = f"{provider.base_url}/chat/completions"
    return Request(
        "POST",
        url,
        headers,
        body=msgspec.json.encode(payload),
        category="llm",
        secrets=tuple(ctx.secrets),
    )


def _key_hint(name: str) -> str:
    return f"set {key_variable(name)} in the worker's environment, or use --mock (PENSTOCK_MOCK_SERVICES=1)"


def _without_key(response: Response, provider: LlmProvider) -> Response:
    """Some endpoints quote the key that they refuse; it is taken out before anything reads the body.

    A short one ("x", "ollama") is a placeholder for a server without keys, and taking it out would spoil the answer.
    """
    if provider.api_key is None or len(provider.api_key) < KEY_CHARACTERS_MIN:
        return response
    body = redact(response.body.decode("utf-8", "surrogateescape"), [provider.api_key])
    headers = redact(dict(response.headers), [provider.api_key])
    return replace(response, body=body.encode("utf-8", "surrogateescape"), headers=headers)


def _output(response: Response, schema: bytes | None, model: str) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(response.body)
        choice = answer["choices"][0]
        text = _text(choice["message"].get("content"))
        usage, finish_reason = answer.get("usage") or {}, choice.get("finish_reason")
    except (msgspec.MsgspecError, RecursionError, LookupError, TypeError, AttributeError):
        detail = {"url": response.url, "body": response.text[:EXCERPT_CHARACTERS]}
        raise Retryable(
            "the answer isn't a chat completion", category="llm", detail=detail
        ) from None
    return {
        "response": text,
        "model": answer.get("model") or model,
        "usage": usage,
        "finish_reason": finish_reason,
        "parsed": None if schema is None else parsed(text, schema),
    }


def _text(content: Any) -> str:
    """Most endpoints answer with text, some with a list of parts, and a refusal has none."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def parsed(text: str, schema: bytes) -> Any:
    """The reply as JSON; `Retryable` when it isn't JSON or doesn't fit."""
    excerpt = {"response": text[:EXCERPT_CHARACTERS]}
    try:
        value = msgspec.json.decode(_unfenced(text))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Retryable(f"the reply isn't JSON: {error}", category="llm", detail=excerpt) from None
    for problem in schema_problems(msgspec.json.decode(schema), value):
        message = f"the reply doesn't fit response_schema: {problem.path or 'the reply'}: {problem.message}"
        raise Retryable(message, category="llm", detail=excerpt)
    return value


def _unfenced(text: str) -> str:
    """Models like to wrap JSON in a Markdown code block."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        return text[3:-3].removeprefix("json").strip()
    return text


def _is_checked_fast(schema: bytes | None, reply: bytes) -> bool:
    """Whether the reply can be read here, on the worker's loop."""
    if schema is None:
        return True
    compiled = cheap_schema(msgspec.Raw(schema))
    return compiled is not None and compiled.is_cheap(reply)
