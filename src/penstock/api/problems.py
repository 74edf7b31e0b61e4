"""Problem documents (RFC 9457): every error is answered with one that says what to do.

Programs can rely on `code`; `detail` is for people and may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from penstock import errors
from penstock.definition.problems import Problem
from penstock.service import problems as service_problems
from penstock.service.problems import problem_document
from penstock.views.problems import ProblemDocument

MEDIA_TYPE = "application/problem+json"
SAFE_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Headers of all answers, also of those that no middleware sees, as to a malformed request."""
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
        problems: list[Problem] | UnsetType = UNSET,
    ) -> None:
        super().__init__(detail)
        self.headers = headers or {}
        self.document = problem_document(status, code, detail, problems)


def problem_response(
    status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None
) -> Response:
    return answer_to(Refused(status, code, detail, headers=headers))


def problem_of(error: Exception) -> ProblemDocument:
    """The problem document of an error inside a larger answer, such as that to a batch."""
    return refusal_of(error).document


def install(app: Starlette) -> None:
    async def answer(_request: Request, error: Exception) -> Response:
        return answer_to(error)

    for kind in (Refused, errors.PenstockError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def answer_to(error: Exception) -> Response:
    """The answer to any exception: a problem document."""
    refusal = refusal_of(error)
    document = refusal.document
    body = msgspec.json.encode(document)
    return Response(body, document.status, {**SAFE_HEADERS, **refusal.headers}, MEDIA_TYPE)


def refusal_of(error: Exception) -> Refused:
    """Any exception as a refusal."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, HTTPException):
        code = CODES.get(error.status_code, "invalid_request")
        return Refused(error.status_code, code, str(error.detail), headers=error.headers)

    document = service_problems.problem_of(error)
    headers: dict[str, str] = {}
    if document.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": "1"}
    elif isinstance(error, errors.Overloaded):
        headers = {"Retry-After": f"{error.retry_after:.0f}"}
    return Refused(
        document.status,
        document.code,
        document.detail,
        headers=headers,
        problems=document.problems,
    )
