"""Refusals of a server as exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from penstock.definition.problems import Problem
from penstock.errors import (
    Conflict,
    InvalidInput,
    InvalidWorkflow,
    KeyReused,
    NotFound,
    PenstockError,
    RateLimited,
    RequestFailed,
    Unauthorized,
    Unreachable,
)

UNAUTHORIZED = 401
TOO_MANY = 429
UNAVAILABLE = (502, 503, 504)
BY_CODE: Mapping[str, type[PenstockError]] = {
    "not_found": NotFound,
    "conflict": Conflict,
    "invalid_input": InvalidInput,
    "key_reused": KeyReused,
    "unauthorized": Unauthorized,
    "forbidden": Unauthorized,
    "unavailable": Unreachable,
}
BY_STATUS: Mapping[int, type[PenstockError]] = {
    UNAUTHORIZED: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    **dict.fromkeys(UNAVAILABLE, Unreachable),
}
KEY_HINT = "; give an API key with --key or PENSTOCK_API_KEY (in Python: api_key=)"
DETAIL_CHARACTERS_MAX = 2000


def error_from(status: int, data: bytes, retry_after: float | None = None) -> PenstockError:
    """The exception for a refused call.

    The body is a problem document, unless a proxy in front of the server answered.
    """
    problem = _decode_problem(data)
    code = problem.get("code", "")
    detail = problem.get("detail") or problem.get("title") or f"the server answered {status}"
    detail = str(detail)[:DETAIL_CHARACTERS_MAX]

    if status == TOO_MANY or code == "too_many_streams":
        return RateLimited(detail, retry_after=retry_after or 0.0)
    problems = problem.get("problems")
    if code == "invalid_workflow" and problems:
        return InvalidWorkflow(_read_problems(problems))

    kind = BY_CODE.get(code) if code else BY_STATUS.get(status)
    if kind is None:
        return RequestFailed(detail, status=status, code=code)
    if status == UNAUTHORIZED:
        return kind(detail + KEY_HINT)
    return kind(detail)


def error_in(problem: Mapping[str, Any]) -> PenstockError:
    """The exception for a problem in a list of answers."""
    return error_from(problem.get("status", 0), msgspec.json.encode(problem))


def _decode_problem(data: bytes) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _read_problems(items: list[dict[str, Any]]) -> list[Problem]:
    return [
        Problem(
            item.get("code", ""),
            item.get("path") or "",
            item.get("message", ""),
            item.get("node_id"),
            item.get("line", UNSET),
            item.get("column", UNSET),
        )
        for item in items
    ]
