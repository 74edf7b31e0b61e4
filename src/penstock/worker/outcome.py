"""From what a handler returned or raised to the event that is reported."""

from __future__ import annotations

import dataclasses
import json
import traceback
from typing import Any

import msgspec

from penstock.engine.events import TaskError
from penstock.errors import HandlerError, Retryable, Terminal

MAX_TRACEBACK = 8000
MAX_MESSAGE = 4000


def _default(value: Any) -> Any:
    """Models are data too; anything else isn't JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} isn't JSON")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default).encode


def encode_output(value: Any) -> bytes:
    """Strict JSON. Raises `Terminal` with a text that says what to return instead."""
    if not value and value in (None, {}):  # what most handlers that only act return
        return b"null" if value is None else b"{}"
    try:
        return _encode(value).encode()
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError) as error:
        reason = "it is nested too deeply, or contains itself" if isinstance(error, RecursionError) else str(error)
        message = f"the handler returned something that isn't JSON: {reason}; return dicts, lists, text and numbers"
        raise Terminal(message, category="not_json") from None


def describe(error: BaseException) -> TaskError:
    """The error as it is kept and shown."""
    if isinstance(error, HandlerError):
        detail = error.detail
        kind = None if type(error) in (Terminal, Retryable) else type(error).__name__
        return TaskError(error.category, _cut(str(error)) or type(error).__name__, kind, detail)
    text = _cut(str(error))
    shown = f"{type(error).__name__}: {text}" if text else type(error).__name__
    trace = "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]
    return TaskError("handler", shown, type(error).__name__, None, trace)


def _cut(text: str) -> str:
    """Texts come from anywhere: half characters become visible, long ones end."""
    safe = text.encode("utf-8", "backslashreplace").decode()
    return safe if len(safe) <= MAX_MESSAGE else safe[:MAX_MESSAGE] + "…"


def is_retryable(error: BaseException) -> bool:
    return not isinstance(error, Terminal)


def retry_after(error: BaseException) -> float | None:
    return error.after if isinstance(error, Retryable) else None
