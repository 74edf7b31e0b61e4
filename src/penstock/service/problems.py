"""Problem documents (RFC 9457): what an error is to whoever asked, as data.

An error inside a larger answer, such as that to a batch, is such a document, over HTTP and in an
embedded engine. Programs can rely on `code`; `detail` is for people and may change.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from msgspec import UNSET, UnsetType

from penstock import errors
from penstock.definition.problems import Problem
from penstock.service.outages import shown_outage
from penstock.views.problems import ProblemDocument

log = logging.getLogger("penstock.service")

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


def problem_document(
    status: int, code: str, detail: str, problems: list[Problem] | UnsetType = UNSET
) -> ProblemDocument:
    return ProblemDocument(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=_without_surrogates(detail),
        code=code,
        problems=problems,
    )


def problem_of(error: Exception) -> ProblemDocument:
    """The problem document of an exception; one that isn't ours is logged, and not described."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            status, code = STATUS[kind]
            return _problem_of_ours(error, status, code)

    log.error("a request broke", exc_info=error)
    detail = "something broke in the service; its log has the details"
    return problem_document(500, "internal_error", detail)


def _problem_of_ours(error: Exception, status: int, code: str) -> ProblemDocument:
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return problem_document(status, code, shown_outage(error))

    if isinstance(error, errors.InvalidWorkflow):
        problems = list(error.problems)
        detail = problems[0].message if problems else str(error)
        if len(problems) > 1:
            detail = f"{len(problems):,} problems; the first: {detail}"
        return problem_document(status, code, detail, problems)

    if isinstance(error, errors.InvalidInput) and error.problems:
        return problem_document(status, code, str(error), list(error.problems))

    return problem_document(status, code, str(error))


def _without_surrogates(text: str) -> str:
    """A text without lone surrogates, which can't be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()
