"""Outcomes: what a handler returned or raised, in the form in which it is reported."""

from __future__ import annotations

import dataclasses
import json
import traceback
from collections.abc import Collection
from typing import Any

import msgspec

from penstock.engine.events import TaskError, TaskEvent, TaskFailed
from penstock.engine.reasons import ErrorCategory
from penstock.errors import HandlerError, Retryable, Terminal
from penstock.worker.redaction import redact

TRACEBACK_CHARACTERS_MAX = 8000
MESSAGE_CHARACTERS_MAX = 4000
CATEGORY_CHARACTERS_MAX = 100
DETAIL_BYTES_MAX = 16 * 1024


def _default(value: Any) -> Any:
    """The JSON value of an object that msgspec doesn't know.

    Models are data too, anything else isn't.
    """
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} isn't JSON")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default
).encode


def encode_output(value: Any) -> bytes:
    """The output as strict JSON. Raises `Terminal` with a text that says what to return instead."""
    if not value and value in (None, {}):  # what most handlers that only act return
        return b"null" if value is None else b"{}"
    try:
        return _encode(value).encode()
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError) as error:
        reason = str(error)
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply, or contains itself"
        raise Terminal(
            f"the handler returned something that isn't JSON: {reason}; "
            "return dicts, lists, text and numbers",
            category=ErrorCategory.NOT_JSON,
        ) from None


def describe(error: BaseException, secrets: Collection[str] = ()) -> TaskError:
    """The error as it is stored and shown.

    Nothing that a handler raises may be impossible to store.
    """
    kind = type(error).__name__
    text = _clean(_text(error), secrets, MESSAGE_CHARACTERS_MAX)
    if isinstance(error, HandlerError):
        error_type = None if type(error) in (Terminal, Retryable) else kind
        category = _clean(str(error.category), secrets, CATEGORY_CHARACTERS_MAX)
        return TaskError(category, text or kind, error_type, _detail(error.detail, secrets))

    message = f"{kind}: {text}" if text else kind
    stack = "".join(traceback.format_exception(error))
    stack = _clean(stack, secrets, TRACEBACK_CHARACTERS_MAX, from_end=True)
    return TaskError(ErrorCategory.HANDLER, message, kind, None, stack)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 -- an error that can't even say what it is
        return "(its text can't be shown)"


def _clean(text: str, secrets: Collection[str], limit: int, *, from_end: bool = False) -> str:
    """The text without secrets, cut to `limit`.

    Secrets are taken out first, or a half of one could stay.
    """
    if secrets:
        text = str(redact(text, secrets))
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= limit:
        return text
    return text[-limit:] if from_end else text[:limit] + "…"


def _detail(detail: Any, secrets: Collection[str]) -> Any:
    if detail is None:
        return None
    try:
        if secrets:
            detail = redact(detail, secrets)
        plain = msgspec.json.decode(encode_output(detail))
        if len(msgspec.msgpack.encode(plain)) <= DETAIL_BYTES_MAX:
            return plain
    except (Terminal, OverflowError, RecursionError, TypeError):
        return "(the detail isn't JSON)"
    return "(the detail is too large to be stored)"


def outcome_name(event: TaskEvent | None) -> str:
    """The name under which an outcome is counted; None is an attempt that nobody waits for."""
    if isinstance(event, TaskFailed):
        return "timed_out" if event.error.category == "timeout" else "failed"
    return "cancelled" if event is None else "completed"


def is_retryable(error: BaseException) -> bool:
    return not isinstance(error, Terminal)


def retry_after(error: BaseException) -> float | None:
    """The delay that the handler asked for, if it can be used."""
    after = error.after if isinstance(error, Retryable) else None
    is_usable = isinstance(after, (int, float)) and 0 <= after < float("inf")
    return after if is_usable else None
