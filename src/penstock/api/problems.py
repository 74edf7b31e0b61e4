"""Problem documents (RFC 9457): every error is answered with one that says what to do.

Programs can rely on `code`; `detail` is for people and may change.
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
"""Headers of all answers, also of those that no middleware sees, as to a malformed request."""
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
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
        self.members = members
        """Further members of the problem document."""


def problem(status: int, code: str, detail: str, **members: Any) -> dict[str, Any]:
    title = HTTPStatus(status).phrase
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        **members,
    }


def problem_response(
    status: int,
    code: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    body = msgspec.json.encode(problem(status, code, _clean(detail), **members))
    return Response(body, status, {**SAFE_HEADERS, **(headers or {})}, MEDIA_TYPE)


def problem_of(error: Exception) -> dict[str, Any]:
    """The problem document of an error inside a larger answer, such as that to a batch."""
    response = answer_to(error)
    document: dict[str, Any] = msgspec.json.decode(bytes(response.body))
    return document


def install(app: FastAPI) -> None:
    async def answer(_request: Request, error: Exception) -> Response:
        return answer_to(error)

    for kind in (Refused, errors.PenstockError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def answer_to(error: Exception) -> Response:
    """The answer to any exception: a problem document."""
    if isinstance(error, Refused):
        return problem_response(
            error.status, error.code, error.detail, headers=error.headers, **error.members
        )
    if isinstance(error, RequestValidationError):
        return _invalid_request(error)
    if isinstance(error, HTTPException):
        code = CODES.get(error.status_code, "invalid_request")
        return problem_response(error.status_code, code, str(error.detail), headers=error.headers)

    for kind in type(error).__mro__:
        if kind in STATUS:
            status, code = STATUS[kind]
            return _answer_to_ours(error, status, code)

    log.error("a request broke", exc_info=error)
    return problem_response(
        500, "internal_error", "something broke in the service; its log has the details"
    )


def _answer_to_ours(error: Exception, status: int, code: str) -> Response:
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return problem_response(status, code, shown_outage(error), headers={"Retry-After": "1"})

    if isinstance(error, errors.Overloaded):
        headers = {"Retry-After": f"{error.retry_after:.0f}"}
        return problem_response(status, code, str(error), headers=headers)

    if isinstance(error, errors.InvalidWorkflow):
        problems = [problem.view() for problem in error.problems]
        detail = error.problems[0].message if error.problems else str(error)
        if len(problems) > 1:
            detail = f"{len(problems):,} problems; the first: {detail}"
        return problem_response(status, code, detail, problems=problems)

    if isinstance(error, errors.InvalidInput) and error.problems:
        problems = [problem.view() for problem in error.problems]
        return problem_response(status, code, str(error), problems=problems)

    return problem_response(status, code, str(error))


def _invalid_request(error: RequestValidationError) -> Response:
    problems = [
        {
            "code": "invalid_request",
            "path": ".".join(map(str, mistake["loc"])),
            "message": mistake["msg"],
            "node_id": None,
        }
        for mistake in error.errors()
    ]
    detail = "; ".join(f"{problem['path']}: {problem['message']}" for problem in problems[:3])
    return problem_response(422, "invalid_request", detail, problems=problems)


def _clean(text: str) -> str:
    """A text without lone surrogates, which can't be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()
