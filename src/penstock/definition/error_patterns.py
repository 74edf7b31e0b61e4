"""Error patterns: which failures `retry.on`, `retry.not_on` and `catches` speak of.

    pattern = category | "http:" status | "http:" digit "xx" | name of an exception

A category is one that Penstock raises, or one of a handler's own. An exception is named by its
class or one above that, without the module. A status is the one that a service has answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Protocol

CATEGORIES = (
    "address",
    "child",
    "compute",
    "condition",
    "config",
    "dependency",
    "expired",
    "expression",
    "handler",
    "http",
    "internal_error",
    "interrupted",
    "items",
    "llm",
    "lost",
    "mock",
    "no_handler",
    "not_json",
    "queue_timeout",
    "rejected",
    "schema",
    "secret",
    "terminated",
    "timeout",
    "too_large",
    "unknown_handler",
)
"""Those that Penstock raises, as `ErrorCategory` has them."""
PATTERN_CHARACTERS_MAX = 100
HTTP = "http:"
STATUS = re.compile(r"http:[1-5](?:[0-9]{2}|xx)")
CATEGORY = re.compile(r"[a-z][a-z0-9_.-]*")
EXCEPTION = re.compile(r"[A-Z_]\w*")


class Failure(Protocol):
    """An error with what patterns look at."""

    @property
    def category(self) -> str: ...
    @property
    def type(self) -> str | None: ...
    @property
    def bases(self) -> tuple[str, ...]: ...
    @property
    def detail(self) -> Any: ...


def is_text(pattern: Any) -> bool:
    """Whether a pattern is text that can be looked at."""
    return isinstance(pattern, str) and 0 < len(pattern) <= PATTERN_CHARACTERS_MAX


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a pattern, whatever names there are."""
    if pattern.startswith(HTTP):
        return None if STATUS.fullmatch(pattern) else "must be a status: http:503 or http:5xx"
    if CATEGORY.fullmatch(pattern) or EXCEPTION.fullmatch(pattern):
        return None
    if "." in pattern:
        return f"must be the name of the class alone: {pattern.rpartition('.')[2][:40]}"
    return "must be a category, a status such as http:5xx or the name of an exception"


def is_own_category(pattern: str) -> bool:
    """Whether it can only be a category of a handler's own."""
    return CATEGORY.fullmatch(pattern) is not None and pattern not in CATEGORIES


def status_code(error: Failure) -> int | None:
    """The status that a service has answered, if that was the failure."""
    detail = error.detail
    status = detail.get("status_code") if isinstance(detail, dict) else None
    is_number = isinstance(status, int) and not isinstance(status, bool)
    return status if is_number else None


def matches(patterns: Iterable[str], error: Failure) -> bool:
    """Whether one of the patterns speaks of this error."""
    return any(_matches(pattern, error) for pattern in patterns)


def matches_status(patterns: Iterable[str], error: Failure) -> bool:
    """Whether one of the patterns speaks of this error by its status."""
    return matches([pattern for pattern in patterns if pattern.startswith(HTTP)], error)


def _matches(pattern: str, error: Failure) -> bool:
    if not pattern.startswith(HTTP):
        return pattern in (error.category, error.type, *error.bases)
    status = status_code(error)
    if status is None:
        return False
    expected = pattern.removeprefix(HTTP)
    return expected in (str(status), f"{status // 100}xx")
