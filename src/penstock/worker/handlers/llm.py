"""`llm_service`: a chat completion from any OpenAI-compatible endpoint that the operator has named.

The output is `{response, model, usage, finish_reason, parsed}`. With `response_schema` the reply
has to be JSON that fits the schema, and `parsed` holds its value. A reply that doesn't fit fails
the attempt, and the node's retry policy decides whether there is another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from penstock.config import OPENAI_URL, LlmProvider, Settings, key_variable, nearest
from penstock.definition.handler_configs import config_keys
from penstock.definition.schema import UNUSABLE, cheap_schema, schema_problems
from penstock.engine.reasons import ErrorCategory
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

KEYS = config_keys("llm_service")
UNAUTHORIZED = frozenset({401, 403})
EXCERPT_CHARACTERS = 2000
KEY_CHARACTERS_MIN = 8
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
FUNCTION = "penstock.worker.handlers.llm:run"


@dataclass(frozen=True, slots=True)
class Call:
    """What a config asks for. `schema` is JSON text, so that its validator can be cached by it."""

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
        model = _choose_model(call.model, name, provider)
        request = _request(call, model, provider, ctx)

        client = self._client(name, provider)
        response = _without_key(await client.send(request), provider)
        if not request.accepts(response.status_code):
            lacks_key = response.status_code in UNAUTHORIZED and not provider.api_key
            hint = f" ({_key_hint(name, provider)})" if lacks_key else ""
            raise failure(request, response, hint)

        if len(response.body) <= INLINE_BYTES and _is_checked_fast(call.schema, response.body):
            return _output(response, call.schema, model)
        return await self._read_large(response, call.schema, model, ctx)

    async def _check_schema(self, schema: bytes | None, ctx: Context) -> None:
        """Check the schema before the model is called: a call costs money."""
        if schema is None:
            return
        problems = await schema_problems_in(
            self._http.sandbox, msgspec.Raw(schema), None, ctx.workflow
        )
        unusable = [problem.message for problem in problems if problem.code == "bad_schema"]
        if unusable:
            reason = unusable[0].removeprefix(UNUSABLE)[:300]
            raise bad_config(f"response_schema isn't a usable JSON schema: {reason}")

    async def _read_large(
        self, response: Response, schema: bytes | None, model: str, ctx: Context
    ) -> msgspec.Raw:
        """The output, made in the sandbox of an answer that is too large for the worker's loop."""
        parts = [msgspec.msgpack.encode((model, schema)), *response.to_parts()]
        job = Job(FUNCTION, parts, turn=ctx.workflow, seconds=READ_SECONDS)
        try:
            answer = await run_job(self._http.sandbox, job)
        except Overrun as error:
            message = f"the answer has {len(response.body):,} bytes and can't be read: {error}"
            raise Terminal(message, category=ErrorCategory.TOO_LARGE) from None

        output, failed = msgspec.msgpack.decode(
            answer, type=tuple[bytes | None, tuple[str, Any] | None]
        )
        if failed is not None:
            raise Retryable(failed[0], category=ErrorCategory.LLM, detail=failed[1])
        return msgspec.Raw(output or b"null")

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    def _provider(self, name: str) -> LlmProvider:
        provider = self._providers.get(name)
        if provider is None:
            hint = nearest(name, self._providers)
            providers = ", ".join(sorted(self._providers))
            raise bad_config(f"there is no LLM provider '{name}'{hint} (known: {providers})")
        # A server of one's own often has no keys; OpenAI's always has.
        if not provider.api_key and provider.base_url == OPENAI_URL:
            raise Terminal(
                f"the LLM provider '{name}' has no API key: {_key_hint(name, provider)}",
                category=ErrorCategory.LLM,
            )
        return provider

    def _client(self, name: str, provider: LlmProvider) -> HttpClient:
        """The client for a provider.

        The operator chose the provider's host, so this client may call it even if it is private.
        Calls of documents may not.
        """
        if name not in self._clients:
            host = urlsplit(provider.base_url).hostname or ""
            self._clients[name] = self._http.new_client(host)
        return self._clients[name]


def run(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The sandbox job that reads a large answer: the output as JSON, or why there is none."""
    model, schema = msgspec.msgpack.decode(parts[0], type=tuple[str, bytes | None])
    response = Response.from_parts(parts[1:])
    try:
        output = msgspec.json.encode(_output(response, schema, model))
    except Retryable as error:
        yield msgspec.msgpack.encode((None, (str(error), error.detail)))
    else:
        yield msgspec.msgpack.encode((output, None))


def read_config(config: Mapping[str, Any], ctx: Context) -> Call:
    check_keys(config, KEYS, ctx)

    options = {}
    for name in ("temperature", "max_tokens"):
        if config.get(name) is not None:
            options[name] = config[name]
    if not all(is_number(value) for value in options.values()):
        raise bad_config("temperature and max_tokens must be numbers")

    for name in ("model", "provider", "system"):
        if not isinstance(config.get(name), (str, type(None))):
            raise bad_config(f"{name} must be text")

    schema = config.get("response_schema")
    return Call(
        messages=_messages(config),
        model=config.get("model") or None,
        options=options,
        schema=None if schema is None else msgspec.json.encode(schema),
        provider=config.get("provider") or None,
    )


def _messages(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    prompt = config.get("prompt")
    messages = config.get("messages")
    if (prompt is None) == (messages is None):
        raise bad_config("give either prompt or messages")

    if messages is None:
        text = prompt if isinstance(prompt, str) else msgspec.json.encode(prompt).decode()
        messages = [{"role": "user", "content": text}]
    elif not _are_messages(messages):
        raise bad_config("messages must be a list of objects with role and content")

    system = config.get("system")
    return [{"role": "system", "content": system}, *messages] if system else messages


def _are_messages(messages: Any) -> bool:
    if not isinstance(messages, list) or not messages:
        return False
    return all(_is_message(item) for item in messages)


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("role"), str) and "content" in item


def _choose_model(model: str | None, name: str, provider: LlmProvider) -> str:
    """The model that the config names, or the provider's first one."""
    if not model:
        model = next(iter(provider.models), None)
    if model is None:
        raise bad_config("the config has no model")
    if provider.models and model not in provider.models:
        hint = nearest(model, provider.models)
        models = ", ".join(provider.models)
        raise bad_config(
            f"the LLM provider '{name}' has no model '{model}'{hint} (known: {models})"
        )
    return model


def _request(call: Call, model: str, provider: LlmProvider, ctx: Context) -> Request:
    payload = {"model": model, "messages": call.messages, **call.options}
    if call.schema is not None:
        json_schema = {"name": "response", "schema": msgspec.Raw(call.schema)}
        payload["response_format"] = {"type": "json_schema", "json_schema": json_schema}

    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if ctx.idempotency_key:
        headers["Idempotency-Key"] = quote(ctx.idempotency_key, safe=":/@[]")
    if provider.api_key:
        headers["Authorization"] = f"Bearer {provider.api_key}"

    return Request(
        method="POST",
        url=f"{provider.base_url}/chat/completions",
        headers=headers,
        body=msgspec.json.encode(payload),
        category=ErrorCategory.LLM,
        secrets=tuple(ctx.secrets),
    )


def _key_hint(name: str, provider: LlmProvider) -> str:
    variable = key_variable(name)
    if provider.reads_openai_key:
        variable = f"{OPENAI_KEY_VARIABLE} (or {variable})"
    return f"set {variable} in the worker's environment, or use --mock (PENSTOCK_MOCK_SERVICES=1)"


def _without_key(response: Response, provider: LlmProvider) -> Response:
    """The response without the API key, which some endpoints quote when they refuse it.

    A short key ("x", "ollama") is a placeholder for a server without keys. It isn't removed,
    because that would spoil the answer.
    """
    key = provider.api_key
    if key is None or len(key) < KEY_CHARACTERS_MIN:
        return response
    text = redact(response.body.decode("utf-8", "surrogateescape"), [key])
    body = text.encode("utf-8", "surrogateescape")
    return replace(response, body=body, headers=redact(dict(response.headers), [key]))


def _output(response: Response, schema: bytes | None, model: str) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(response.body)
        choice = answer["choices"][0]
        text = _text(choice["message"].get("content"))
        usage = answer.get("usage") or {}
        finish_reason = choice.get("finish_reason")
    except (msgspec.MsgspecError, RecursionError, LookupError, TypeError, AttributeError):
        detail = {"url": response.url, "body": response.text[:EXCERPT_CHARACTERS]}
        raise Retryable(
            "the answer isn't a chat completion", category=ErrorCategory.LLM, detail=detail
        ) from None
    return {
        "response": text,
        "model": answer.get("model") or model,
        "usage": usage,
        "finish_reason": finish_reason,
        "parsed": None if schema is None else parsed(text, schema),
    }


def _text(content: Any) -> str:
    """The text of a reply.

    Most endpoints answer with text, some with a list of parts, and a refusal has none.
    """
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def parsed(text: str, schema: bytes) -> Any:
    """The reply's value. Raises `Retryable` if it isn't JSON or doesn't fit the schema."""
    excerpt = {"response": text[:EXCERPT_CHARACTERS]}
    try:
        value = msgspec.json.decode(_unfenced(text))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Retryable(
            f"the reply isn't JSON: {error}", category=ErrorCategory.LLM, detail=excerpt
        ) from None

    for problem in schema_problems(msgspec.json.decode(schema), value):
        where = problem.path or "the reply"
        message = f"the reply doesn't fit response_schema: {where}: {problem.message}"
        raise Retryable(message, category=ErrorCategory.LLM, detail=excerpt)
    return value


def _unfenced(text: str) -> str:
    """The text without a Markdown code block around it, in which models like to wrap JSON."""
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
