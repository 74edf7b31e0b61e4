"""`llm_service`: a chat completion from any OpenAI-compatible endpoint that the operator has named.

The output is `{response, model, usage, finish_reason, parsed, tool_calls}`. With `response_schema`
the reply has to be JSON that fits the schema, and `parsed` holds its value. With `tools` the reply
may have calls of them instead, with their arguments as values.

A reply that doesn't fit is sent back to the model with what is wrong with it, as often as `repairs`
says; `usage` has the sums of all these calls. After the last one the attempt fails, and the node's
retry policy decides whether there is another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from penstock.config import OPENAI_URL, LlmProvider, Settings, key_variable, nearest
from penstock.definition.schema import UNUSABLE
from penstock.engine.reasons import ErrorCategory
from penstock.errors import Retryable, Terminal
from penstock.sandbox import Job, Overrun, schema_problems_in
from penstock.sandbox import call as run_job
from penstock.worker.context import Context
from penstock.worker.handlers.http import HttpHandler, bad_config
from penstock.worker.handlers.http_exchange import (
    INLINE_BYTES,
    READ_SECONDS,
    Request,
    Response,
    failure,
)
from penstock.worker.handlers.llm_reply import Reply, read_reply
from penstock.worker.handlers.llm_request import Call, read_config, request_body
from penstock.worker.redaction import redact

if TYPE_CHECKING:
    from penstock.worker.handlers.http_client import HttpClient

UNAUTHORIZED = frozenset({401, 403})
KEY_CHARACTERS_MIN = 8
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
FUNCTION = "penstock.worker.handlers.llm_reply:run"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider, its name in the settings, and a model that it offers."""

    name: str
    provider: LlmProvider
    model: str


class LlmHandler:
    def __init__(self, settings: Settings, http: HttpHandler) -> None:
        self._providers = settings.llm_providers
        self._default = settings.llm_default_provider
        self._http = http
        self._clients: dict[str, HttpClient] = {}

    async def __call__(self, config: dict[str, Any], ctx: Context) -> Any:
        call = read_config(config, ctx)
        await self._check_schemas(call, ctx)
        await self._http.load_client()

        endpoint = self._endpoint(call)
        messages = call.messages
        reply = Reply(usage={})
        for repair in range(call.repairs + 1):
            body = request_body(call, endpoint.model, messages)
            response = await self._send(_request(body, endpoint, ctx, repair), endpoint)
            reply = await self._read(response, call, endpoint.model, reply.usage, ctx)
            if not reply.problem:
                return reply.output
            if not reply.follow_up:
                break
            if repair < call.repairs:
                ctx.log.warning("%s; the model is told so, and asked again", reply.problem)
                messages = [*messages, *reply.follow_up]
        detail = {**reply.detail, "usage": reply.usage}
        raise Retryable(reply.problem, category=ErrorCategory.LLM, detail=detail)

    async def _send(self, request: Request, endpoint: Endpoint) -> Response:
        response = await self._client(endpoint).send(request)
        response = _without_key(response, endpoint.provider)
        if not request.accepts(response.status_code):
            lacks_key = response.status_code in UNAUTHORIZED and not endpoint.provider.api_key
            hint = f" ({_key_hint(endpoint.name, endpoint.provider)})" if lacks_key else ""
            raise failure(request, response, hint)
        return response

    async def _read(
        self, response: Response, call: Call, model: str, spent: dict[str, Any], ctx: Context
    ) -> Reply:
        is_small = len(response.body) <= INLINE_BYTES
        if is_small and call.expected.is_checked_fast(response.body):
            return read_reply(response, call.expected, model, spent)
        return await self._read_large(response, call, model, spent, ctx)

    async def _check_schemas(self, call: Call, ctx: Context) -> None:
        """Check the schemas before the model is called: a call costs money."""
        expected = call.expected
        if expected.schema is not None:
            await self._check_schema('"response_schema"', expected.schema, ctx)
        for name, schema in expected.tools.items():
            if schema is not None:
                await self._check_schema(f'"parameters" of the tool {name!r}', schema, ctx)

    async def _check_schema(self, subject: str, schema: bytes, ctx: Context) -> None:
        problems = await schema_problems_in(
            self._http.sandbox, msgspec.Raw(schema), None, ctx.workflow
        )
        unusable = [problem.message for problem in problems if problem.code == "bad_schema"]
        if unusable:
            reason = unusable[0].removeprefix(UNUSABLE)[:300]
            raise bad_config(f"{subject} isn't a usable JSON Schema: {reason}")

    async def _read_large(
        self, response: Response, call: Call, model: str, spent: dict[str, Any], ctx: Context
    ) -> Reply:
        """The reply, read in the sandbox: it is too large for the worker's loop."""
        parts = [msgspec.msgpack.encode((model, call.expected, spent)), *response.to_parts()]
        job = Job(FUNCTION, parts, turn=ctx.workflow, seconds=READ_SECONDS)
        try:
            answer = await run_job(self._http.sandbox, job)
        except Overrun as error:
            message = f"the answer has {len(response.body):,} bytes and can't be read: {error}"
            raise Terminal(message, category=ErrorCategory.TOO_LARGE) from None

        reply, output = msgspec.msgpack.decode(answer, type=tuple[Reply, bytes])
        if not reply.problem:
            reply.output = msgspec.Raw(output)
        return reply

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    def _endpoint(self, call: Call) -> Endpoint:
        name = call.provider or self._default
        provider = self._provider(name)
        return Endpoint(name, provider, _choose_model(call.model, name, provider))

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

    def _client(self, endpoint: Endpoint) -> HttpClient:
        """The client for a provider.

        The operator chose the provider's host, so this client may call it even if it is private.
        Calls of documents may not.
        """
        name = endpoint.name
        if name not in self._clients:
            host = urlsplit(endpoint.provider.base_url).hostname or ""
            self._clients[name] = self._http.new_client(host)
        return self._clients[name]


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


def _request(body: bytes, endpoint: Endpoint, ctx: Context, repair: int) -> Request:
    """The request, which is the `repair`th that corrects the first one.

    Each has a key of its own, or a server that honours it would repeat its first answer.
    """
    provider = endpoint.provider
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if ctx.idempotency_key:
        key = f"{ctx.idempotency_key}:repair-{repair}" if repair else ctx.idempotency_key
        headers["Idempotency-Key"] = quote(key, safe=":/@[]")
    if provider.api_key:
        headers["Authorization"] = f"Bearer {provider.api_key}"

    return Request(
        method="POST",
        url=f"{provider.base_url}/chat/completions",
        headers=headers,
        body=body,
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
