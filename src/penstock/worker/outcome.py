"""Outcomes: what a handler returned or raised, in the form in which it is reported."""

from __future__ import annotations

import dataclasses
import json
import math
import traceback
from collections.abc import Collection, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

from penstock.engine.events import TaskError, TaskEvent, TaskFailed
from penstock.engine.reasons import ErrorCategory
from penstock.errors import HandlerError, PenstockError, Retryable, Terminal
from penstock.worker.redaction import redact

TRACEBACK_CHARACTERS_MAX = 8000
MESSAGE_CHARACTERS_MAX = 4000
CATEGORY_CHARACTERS_MAX = 100
DETAIL_BYTES_MAX = 16 * 1024
PATH_KEY_CHARACTERS_MAX = 50
TEXTS = (date, time, timedelta, Decimal, UUID)
"""Types that are written as text, as msgspec does: ISO 8601, and all digits of a decimal."""
BASES_MAX = 10
COMMON_BASES = (object, BaseException, Exception, PenstockError, HandlerError)


def encode_output(value: Any) -> bytes:
    """The output as strict JSON. Raises `Terminal` with a text that says what to return instead."""
    if not value and value in (None, {}):  # what most handlers that only act return
        return b"null" if value is None else b"{}"
    try:
        return _encode(value).encode()
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError):
        pass  # a key, perhaps, that the encoder doesn't know; else the second try says where
    try:
        return _encode(_plain(value, "output")).encode()
    except _NotJson as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply, or contains itself"
    raise Terminal(
        f"the handler returned something that isn't JSON: {reason}; "
        "return dicts, lists, text and numbers",
        category=ErrorCategory.NOT_JSON,
    )


class _NotJson(TypeError):
    """A value can't be written as JSON; the text says what and where."""


def _default(value: Any) -> Any:
    """The JSON value of an object that the encoder doesn't know. Raises `TypeError`."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return _ordered(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (msgspec.Struct, *TEXTS)):
        return msgspec.to_builtins(value, enc_hook=_default)
    raise TypeError(f"{type(value).__name__} isn't JSON")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default
).encode


def _ordered(values: Collection[Any]) -> list[Any]:
    """The items of a set, in an order that is the same in each attempt, if there is one."""
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def _plain(value: Any, path: str) -> Any:
    """A value as dicts, lists, text and numbers. Raises `_NotJson` for the first that is neither.

    It is slower than the encoder, and knows where it is.
    """
    if isinstance(value, str):
        return _checked_text(value, path)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _NotJson(f"{value} at {path}")
        return value
    if isinstance(value, Mapping):
        return {_key(key, path): _plain(item, f"{path}{_step(key)}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise _NotJson(f"bytes at {path}: decode them to text, or encode them as Base64")
    try:
        plainer = _default(value)
    except TypeError as error:
        kind = type(value).__name__
        if str(error) == f"{kind} isn't JSON":
            raise _NotJson(f"{kind} at {path}") from None
        raise _NotJson(f"{kind} at {path}: {error}") from None
    return _plain(plainer, path)


def _key(key: Any, path: str) -> str | int | float | bool | None:
    """A key as the encoder takes it."""
    if isinstance(key, str):
        return _checked_text(key, f"a key of {path}")
    if key is None or isinstance(key, (bool, int, float)):
        return key
    if isinstance(key, (Enum, *TEXTS)):
        text = _default(key)
        if isinstance(text, (str, int)):
            return text
    raise _NotJson(f"{type(key).__name__} as a key of {path}")


def _checked_text(text: str, path: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _NotJson(f"half a character (a lone surrogate) in the text at {path}") from None
    return text


def _step(key: Any) -> str:
    text = str(key)
    if len(text) > PATH_KEY_CHARACTERS_MAX:
        return "[…]"
    # neither cut nor escaped: a secret in it is only found whole
    return f".{text}" if text.isidentifier() else f'["{text}"]'


def describe(error: BaseException, secrets: Collection[str] = ()) -> TaskError:
    """The error as it is stored and shown.

    Nothing that a handler raises may be impossible to store.
    """
    kind = type(error).__name__
    text = _clean(_text(error), secrets, MESSAGE_CHARACTERS_MAX)
    if isinstance(error, HandlerError):
        error_type = None if type(error) in (Terminal, Retryable) else kind
        category = _clean(str(error.category), secrets, CATEGORY_CHARACTERS_MAX)
        detail = _detail(error.detail, secrets)
        return TaskError(category, text or kind, error_type, detail, bases=_bases(error))

    message = f"{kind}: {text}" if text else kind
    stack = "".join(traceback.format_exception(error))
    stack = _clean(stack, secrets, TRACEBACK_CHARACTERS_MAX, from_end=True)
    return TaskError(ErrorCategory.HANDLER, message, kind, None, stack, _bases(error))


def _bases(error: BaseException) -> tuple[str, ...]:
    """The names of the classes above the exception's own, but for those that all have."""
    above = type(error).__mro__[1 : 1 + BASES_MAX]
    return tuple(kind.__name__ for kind in above if kind not in COMMON_BASES)


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
