"""From what a handler returned or raised to what is reported.

Strict JSON, and errors that can always be stored.
"""

import dataclasses
import enum
from collections import OrderedDict
from typing import Any

import msgspec
import pytest

from penstock.engine.events import TaskError, TaskFailed
from penstock.errors import Retryable, Terminal
from penstock.stores import codec
from penstock.worker.outcome import (
    MESSAGE_CHARACTERS_MAX,
    TRACEBACK_CHARACTERS_MAX,
    describe,
    encode_output,
    is_retryable,
    retry_after,
)


@dataclasses.dataclass
class Point:
    x: int
    y: list[int]


class Size(msgspec.Struct):
    width: int


class Model:
    """What pydantic's models look like from outside."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"mode": mode}


class Color(enum.StrEnum):
    RED = "red"


def _contains_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({"a": [1, 1.5, True, None, "é\n"]}, '{"a":[1,1.5,true,null,"é\\n"]}'),
        ((1, 2), "[1,2]"),
        (2**70, "1180591620717411303424"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (Point(1, [2]), '{"x":1,"y":[2]}'),
        ({"nested": [Size(3)]}, '{"nested":[{"width":3}]}'),
        (Model(), '{"mode":"json"}'),
        (Color.RED, '"red"'),
    ],
)
def test_json_and_models_are_written_as_json(value: object, text: str) -> None:
    assert encode_output(value).decode() == text


NOT_JSON: dict[str, Any] = {
    "nan": float("nan"),
    "infinity inside": {"a": float("inf")},
    "bytes": b"bytes",
    "a set": {1, 2},
    "an object": object(),
    "contains itself": _contains_itself(),
    "100,000 deep": _deep(),
    "a tuple as key": {(1, 2): 3},
    "half a character": "\ud800",
    "half a character as key": {"\udfff": 1},
    "a complex number": 1j,
    "a class": Point,
    "a function": _deep,
}


@pytest.mark.parametrize("what", NOT_JSON)
def test_anything_else_is_refused_with_what_to_return_instead(what: str) -> None:
    with pytest.raises(
        Terminal, match=r"isn't JSON: .*; return dicts, lists, text and numbers"
    ) as caught:
        encode_output(NOT_JSON[what])
    assert caught.value.category == "not_json"


def test_an_error_is_described_with_its_type_its_text_and_where_it_was_raised() -> None:
    with pytest.raises(KeyError) as caught:
        dict[str, int]().__getitem__("missing")
    described = describe(caught.value)
    assert (described.category, described.type, described.message) == (
        "handler",
        "KeyError",
        "KeyError: 'missing'",
    )
    assert described.traceback is not None
    assert __file__ in described.traceback


def test_a_handlers_own_verdict_is_kept_with_its_category_and_detail() -> None:
    described = describe(Terminal("no such user", category="http", detail={"status": 404}))
    assert described == TaskError("http", "no such user", detail={"status": 404})
    assert describe(Retryable()).message == "Retryable"


def test_a_subclass_of_the_verdicts_shows_its_name() -> None:
    class QuotaExceeded(Terminal):
        pass

    assert describe(QuotaExceeded("used up")).type == "QuotaExceeded"


@pytest.mark.parametrize(
    ("error", "again", "after"),
    [
        (ValueError("x"), True, None),
        (SystemExit(3), True, None),
        (Terminal("x"), False, None),
        (Retryable("x"), True, None),
        (Retryable("x", after=2.5), True, 2.5),
        (Retryable("x", after=0), True, 0),
    ],
)
def test_only_terminal_errors_are_not_retried(
    error: BaseException,
    again: bool,  # noqa: FBT001
    after: float | None,
) -> None:
    assert is_retryable(error) == again
    assert retry_after(error) == after


def test_long_texts_are_cut() -> None:
    described = describe(ValueError("x" * 1_000_000))
    assert len(described.message) < MESSAGE_CHARACTERS_MAX + 100
    assert len(described.traceback or "") <= TRACEBACK_CHARACTERS_MAX


NASTY: dict[str, BaseException] = {
    "half a character": ValueError("\ud800"),
    "no text": Unprintable(),
    "no text inside": ValueError(Unprintable()),
    "an object as detail": Terminal("x", detail=object()),
    "half a character in detail": Terminal("x", detail={"half": "\ud800"}),
    "a tuple as key in detail": Terminal("x", detail={(1, 2): 3}),
    "detail contains itself": Terminal("x", detail=_contains_itself()),
    "nan as detail": Terminal("x", detail=float("nan")),
    "a number as category": Terminal("x", category=5),  # type: ignore[arg-type]
    "half a character as category": Terminal("x", category="\ud800"),
    "text as delay": Retryable("x", after="soon"),  # type: ignore[arg-type]
    "nan as delay": Retryable("x", after=float("nan")),
    "an endless delay": Retryable("x", after=float("inf")),
    "a negative delay": Retryable("x", after=-1.0),
    "a group": ExceptionGroup("several", [ValueError("\ud800"), Unprintable()]),
    "undecodable": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
}


@pytest.mark.parametrize("what", NASTY)
def test_whatever_was_raised_becomes_something_that_can_be_stored_and_read_back(what: str) -> None:
    """What can't be written in the end would stop the partition's owner, not just this node."""
    error = NASTY[what]
    after = retry_after(error)
    event = TaskFailed("e", "n", 1, 1, "w", 1.0, describe(error), is_retryable(error), after)
    assert codec.decode_event(codec.encode(event)) == event
    msgspec.json.encode(event.error)
    assert after is None or 0 <= after < float("inf")
    assert event.error.message
