"""What a server's answers become: problem documents exceptions, executions results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

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
from penstock.runtime.result import Result

UNAVAILABLE, TOO_MANY = (502, 503, 504), 429
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
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    **dict.fromkeys(UNAVAILABLE, Unreachable),
}
KEY_HINT = "; give an API key with --key or PENSTOCK_API_KEY (in Python: api_key=)"
DETAIL_CHARACTERS_MAX = 2000


class RemoteResult(Result):
    """A `Result` from an execution's JSON."""

    def __init__(self, view: dict[str, Any]) -> None:
        self.execution_id, self.workflow, self.version = (
            view["execution_id"],
            view["workflow"],
            view["version"],
        )
        self.state = view["state"]
        self.view = view


def error_from(status: int, data: bytes, retry_after: float | None = None) -> PenstockError:
    """A refused call.

    The body is a problem document, unless something between here and the server answered.
    """
    problem = _problem(data)
    code = problem.get("code", "")
    detail = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")[
        :DETAIL_CHARACTERS_MAX
    ]
    if status == TOO_MANY or code == "too_many_streams":
        return RateLimited(detail, retry_after=retry_after or 0.0)
    if code == "invalid_workflow" and (found := problem.get("problems")):
        return InvalidWorkflow(_problems(found))
    kind = BY_CODE.get(code) or (None if code else BY_STATUS.get(status))
    if kind is None:
        return RequestFailed(detail, status=status, code=code)
    return kind(detail + KEY_HINT) if status == 401 else kind(detail)  # noqa: PLR2004


def error_in(problem: Mapping[str, Any]) -> PenstockError:
    """One that stands in a list of answers."""
    return error_from(problem.get("status", 0), msgspec.json.encode(problem))


def _problem(data: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _problems(found: list[dict[str, Any]]) -> list[Problem]:
    return [
        Problem(
            item.get("code", ""),
            item.get("path") or "",
            item.get("message", ""),
            item.get("node_id"),
        )
        for item in found
    ]
