"""Problem documents (RFC 9457): every error is answered with one that says what to do.

Programs can rely on `code`; `detail` is for people and may change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from msgspec import UNSET, UnsetType
from starlette.exceptions import HTTPException
from starlette.responses import Response

from penstock import errors
from penstock.definition.problems import Problem
from penstock.service.outages import shown_outage
from penstock.views.problems import ProblemDocument

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
    # A service that stops, or that another version's migration overtook: a client tries another.
    errors.NotOpen: (503, "unavailable"),
    errors.SchemaMismatch: (503, "unavailable"),
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
        problems: list[Problem] | UnsetType = UNSET,
    ) -> None:
        super().__init__(detail)
        self.headers = headers or {}
        self.document = problem(status, code, detail, problems)


def problem(
    status: int, code: str, detail: str, problems: list[Problem] | UnsetType = UNSET
) -> ProblemDocument:
    return ProblemDocument(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=_clean(detail),
        code=code,
        problems=problems,
    )


def problem_response(
    status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None
) -> Response:
    return answer_to(Refused(status, code, detail, headers=headers))


def problem_of(error: Exception) -> ProblemDocument:
    """The problem document of an error inside a larger answer, such as that to a batch."""
    return refusal_of(error).document


def install(app: FastAPI) -> None:
    async def answer(_request: Request, error: Exception) -> Response:
        return answer_to(error)

    for kind in (Refused, errors.PenstockError, RequestValidationError, HTTPException, Exception):
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
    if isinstance(error, RequestValidationError):
        return _invalid_request(error)
    if isinstance(error, HTTPException):
        code = CODES.get(error.status_code, "invalid_request")
        return Refused(error.status_code, code, str(error.detail), headers=error.headers)

    for kind in type(error).__mro__:
        if kind in STATUS:
            status, code = STATUS[kind]
            return _refusal_of_ours(error, status, code)

    log.error("a request broke", exc_info=error)
    return Refused(500, "internal_error", "something broke in the service; its log has the details")


def _refusal_of_ours(error: Exception, status: int, code: str) -> Refused:
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return Refused(status, code, shown_outage(error), headers={"Retry-After": "1"})

    if isinstance(error, errors.Overloaded):
        headers = {"Retry-After": f"{error.retry_after:.0f}"}
        return Refused(status, code, str(error), headers=headers)

    if isinstance(error, errors.InvalidWorkflow):
        problems = list(error.problems)
        detail = problems[0].message if problems else str(error)
        if len(problems) > 1:
            detail = f"{len(problems):,} problems; the first: {detail}"
        return Refused(status, code, detail, problems=problems)

    if isinstance(error, errors.InvalidInput) and error.problems:
        return Refused(status, code, str(error), problems=list(error.problems))

    return Refused(status, code, str(error))


def _invalid_request(error: RequestValidationError) -> Refused:
    problems = [
        Problem("invalid_request", ".".join(map(str, mistake["loc"])), mistake["msg"])
        for mistake in error.errors()
    ]
    detail = "; ".join(f"{problem.path}: {problem.message}" for problem in problems[:3])
    return Refused(422, "invalid_request", detail, problems=problems)


def _clean(text: str) -> str:
    """A text without lone surrogates, which can't be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()
