"""`retry.on` and `retry.not_on` say which errors are followed by another attempt."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.events import TaskError
from tests.engine.trial import Trial, node

HTTP_404 = TaskError("http", "not found", detail={"status_code": 404})
HTTP_503 = TaskError("http", "overloaded", detail={"status_code": 503})
NO_ANSWER = TaskError("http", "no answer", detail={"url": "https://example.com"})
VALUE_ERROR = TaskError("handler", "bad", "ValueError")
RESET = TaskError("handler", "reset", "ConnectionResetError", bases=("ConnectionError", "OSError"))


def state_after(error: TaskError, *, retryable: bool = True, **retry: Any) -> str:
    trial = Trial(node("a", retry=retry))
    trial.fail("a", error=error, retryable=retryable)
    return trial.states["a"]


@pytest.mark.parametrize(
    ("patterns", "error"),
    [
        (["http"], NO_ANSWER),
        (["http:503"], HTTP_503),
        (["timeout", "http:5xx"], HTTP_503),
        ("http:5xx", HTTP_503),
        (["ValueError"], VALUE_ERROR),
        (["OSError"], RESET),
        (["handler"], RESET),
    ],
)
def test_on_and_not_on_name_errors(patterns, error):
    assert state_after(error, on=patterns) == "RETRYING"
    assert state_after(error, not_on=patterns) == "FAILED"


@pytest.mark.parametrize(
    ("patterns", "error"),
    [
        (["http:503"], NO_ANSWER),
        (["http:5xx"], HTTP_404),
        (["http:502"], HTTP_503),
        (["ValueErro"], VALUE_ERROR),
        (["FileNotFoundError"], RESET),
    ],
)
def test_other_errors_are_not_meant(patterns, error):
    assert state_after(error, on=patterns) == "FAILED"
    assert state_after(error, not_on=patterns) == "RETRYING"


def test_not_on_wins_over_on():
    assert state_after(HTTP_503, on=["http"], not_on=["http:503"]) == "FAILED"
    assert state_after(NO_ANSWER, on=["http"], not_on=["http:503"]) == "RETRYING"


def test_a_status_that_is_named_is_retried_even_if_the_handler_would_not():
    assert state_after(HTTP_404, retryable=False, on=["http:404"]) == "RETRYING"
    assert state_after(HTTP_404, retryable=False, on=["http"]) == "FAILED"
    assert state_after(VALUE_ERROR, retryable=False, on=["ValueError"]) == "FAILED"


def test_a_lost_attempt_is_repeated_unless_not_on_names_it():
    for retry, state in (({"on": ["http"]}, "QUEUED"), ({"not_on": ["lost"]}, "FAILED")):
        trial = Trial(node("a", retry=retry))
        trial.lose("a")
        assert trial.states["a"] == state


def test_a_timeout_is_an_error_like_others():
    for retry, state in (({"on": ["timeout"]}, "RETRYING"), ({"on": ["http"]}, "FAILED")):
        trial = Trial(node("a", timeout_seconds=5, retry=retry))
        trial.started("a", at=1.0)
        trial.timer(at=16.0)
        assert trial.states["a"] == state
