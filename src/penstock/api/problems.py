"""RFC 9457: whatever goes wrong is answered as a problem document that says what to do.

`code` is the word that a program can rely on; `detail` is for people and may change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from penstock import errors
from penstock.service.outages import shown_outage

log = logging.getLogger("penstock.api")

MEDIA_TYPE = "application/problem+json"
SAFE_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Headers of all answers, also of problems that no middleware sees, such as those of a request that
couldn't be read.
"""
STATUS: dict[type[Exception], tuple[int, str]] = {
    errors.InvalidWorkflow: (422, "invalid_workflow"),
    errors.InvalidInput: (422, "invalid_input"),
    errors.KeyReused: (422, "key_reused"),
    errors.NotFound: (404, "not_found"),
    errors.Conflict: (409, "conflict"),
    errors.StoreUnavailable: (503, "unavailable"),
    errors.Overloaded: (429, "too_much_waiting"),
}
"""HTTP statuses of exceptions, looked up along the class's bases."""
CODES = {
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
}


class Refused(Exception):
    """A request that is answered with this problem."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers, self.more = (
            status,
            code,
            detail,
            headers,
            more,
        )


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    title = HTTPStatus(status).phrase
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        **more,
    }


def problem_response(
    status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    body = msgspec.json.encode(problem(status, code, _clean(detail), **more))
    return Response(body, status, {**SAFE_HEADERS, **(headers or {})}, MEDIA_TYPE)


def problem_of(error: Exception) -> dict[str, Any]:
    """The problem document of an error inside a larger answer, such as one of a batch."""
    response = answer_to(error)
    found: dict[str, Any] = msgspec.json.decode(bytes(response.body))
    return found


def install(app: FastAPI) -> None:
    async def answer(_request: Request, error: Exception) -> Response:
        return answer_to(error)

    for kind in (Refused, errors.PenstockError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def answer_to(error: Exception) -> Response:
    """The problem document of whatever was raised."""
    if isinstance(error, Refused):
        return problem_response(
            error.status, error.code, error.detail, headers=error.headers, **error.more
        )
    if isinstance(error, RequestValidationError):
        return _invalid_request(error)
    if isinstance(error, HTTPException):
        code = CODES.get(error.status_code, "invalid_request")
        return problem_response(error.status_code, code, str(error.detail), headers=error.headers)
    for kind in type(error).__mro__:
        if kind in STATUS:
            return _ours(error, *STATUS[kind])
    log.error("a request broke", exc_info=error)
    return problem_response(
        500, "internal_error", "something broke in the service; its log has the details"
    )


def _ours(error: Exception, status: int, code: str) -> Response:
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return problem_response(status, code, shown_outage(error), headers={"Retry-After": "1"})
    headers = (
        {"Retry-After": f"{error.retry_after:.0f}"}
        if isinstance(error, errors.Overloaded)
        else None
    )
    if isinstance(error, errors.InvalidWorkflow):
        problems = [msgspec.to_builtins(each) for each in error.problems]
        count = len(error.problems)
        first = f"{count:,} problems; the first: " if count > 1 else ""
        detail = first + (error.problems[0].message if error.problems else str(error))
        return problem_response(status, code, detail, problems=problems)
    if isinstance(error, errors.InvalidInput) and error.problems:
        return problem_response(
            status, code, str(error), problems=[msgspec.to_builtins(it) for it in error.problems]
        )
    return problem_response(status, code, str(error), headers=headers)


def _invalid_request(error: RequestValidationError) -> Response:
    problems = [
        {
            "code": "invalid_request",
            "path": ".".join(map(str, each["loc"])),
            "message": each["msg"],
            "node_id": None,
        }
        for each in error.errors()
    ]
    detail = "; ".join(f"{each['path']}: {each['message']}" for each in problems[:3])
    return problem_response(422, "invalid_request", detail, problems=problems)


def _clean(text: str) -> str:
    """A text without half characters, which can't be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()
