"""The handlers that every worker has.

Importing this costs little: aiohttp, CEL and the schema validator are imported by the first task
that needs them. `input`, `output` and `decision` aren't here: the engine evaluates these itself.

- `http`: `call_external_service`: one HTTP call.
- `http_client`: sends its request, following redirects by hand.
- `http_exchange`: a request, its response, and what a status means for the attempt.
- `addresses`: which addresses may be called.
- `llm`: `llm_service`: a chat completion.
- `llm_request`: what its config asks for, and the body of the request.
- `llm_reply`: what came of the answer: an output, or what is wrong with it.
- `notify`: `penstock.notify`: tells others that an approval waits.
- `transform`: `transform`: a value, or a CEL expression.
- `data`: `penstock.aggregate`, `penstock.compute` and `penstock.validate`.
- `simple`: `noop`, `echo`, `sleep` and `fail`.
- `mock`: stand-ins for the two handlers that call out.
- `samples`: a small value that fits a JSON schema, for mocks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from penstock.config import Settings
from penstock.definition.model import NOTIFY
from penstock.sandbox import Sandbox, sandbox_of
from penstock.worker.context import Context
from penstock.worker.handlers.data import ComputeHandler, ValidateHandler, aggregate
from penstock.worker.handlers.http import HttpHandler
from penstock.worker.handlers.llm import LlmHandler
from penstock.worker.handlers.mock import mock_http, mock_llm, slowed
from penstock.worker.handlers.notify import NotifyHandler, mock_notify
from penstock.worker.handlers.simple import echo, fail, noop, sleep
from penstock.worker.handlers.transform import TransformHandler

Handler: TypeAlias = Callable[[dict[str, Any], Context], Awaitable[Any]]


def builtin(settings: Settings, sandbox: Sandbox | None = None) -> dict[str, Handler]:
    """Built-in handlers by canonical name.

    A handler that has `close()` holds connections: the worker closes it when it stops.

    Handlers compute in `sandbox` what may take long; without one, a new sandbox is made.
    """
    sandbox = sandbox or sandbox_of(settings)
    http = HttpHandler(settings, sandbox=sandbox)
    transform = TransformHandler(sandbox)

    call_external_service: Handler = http
    llm_service: Handler = LlmHandler(settings, http)
    notify: Handler = NotifyHandler(settings, http)
    if settings.mock_services:
        notify = mock_notify
        call_external_service = slowed(mock_http, settings.mock_seconds)
        llm_service = slowed(mock_llm, settings.mock_seconds)

    return {
        "call_external_service": call_external_service,
        "llm_service": llm_service,
        "transform": transform,
        "noop": noop,
        "sleep": sleep,
        "fail": fail,
        "echo": echo,
        "penstock.aggregate": aggregate,
        "penstock.compute": ComputeHandler(transform),
        "penstock.validate": ValidateHandler(sandbox),
        NOTIFY: notify,
    }
