"""Outcomes are strict JSON, and errors can always be stored."""

import dataclasses
import enum
from collections import OrderedDict, UserDict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

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
    y: list[Any]


class Size(msgspec.Struct):
    width: Any


class Model:
    """What pydantic's models look like from outside."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"mode": mode}


class Color(enum.StrEnum):
    RED = "red"


class Shape(enum.Enum):
    ROUND = 2


@dataclasses.dataclass
class Order:
    id: UUID
    prices: set[Decimal]


EAST = timezone(timedelta(hours=2))


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
        (Shape.ROUND, "2"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), '"2026-01-31T12:00:00Z"'),
        (datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=EAST), '"2026-01-31T12:00:00.000005+02:00"'),
        (datetime(2026, 1, 31, 12), '"2026-01-31T12:00:00"'),  # noqa: DTZ001 -- one without a zone
        (date(2026, 1, 31), '"2026-01-31"'),
        (time(12, 30), '"12:30:00"'),
        (timedelta(hours=1, seconds=1.5), '"PT3601.5S"'),
        (Decimal("10.50"), '"10.50"'),
        (UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
        ({3, 1, 2}, "[1,2,3]"),
        ({"tags": frozenset({"b", "a"})}, '{"tags":["a","b"]}'),
        ({1, "a"} - {"a"}, "[1]"),
        (Order(UUID(int=1), {Decimal(2)}), f'{{"id":"{UUID(int=1)}","prices":["2"]}}'),
        ([Size(Point(1, [Shape.ROUND]))], '[{"width":{"x":1,"y":[2]}}]'),
        ({UUID(int=1): 1, date(2026, 1, 31): 2}, f'{{"{UUID(int=1)}":1,"2026-01-31":2}}'),
        ({Color.RED: 1, Shape.ROUND: 2, 3: 4}, '{"red":1,"2":2,"3":4}'),
        (UserDict(a={"b": {UUID(int=2): 1}}), f'{{"a":{{"b":{{"{UUID(int=2)}":1}}}}}}'),
    ],
)
def test_json_and_models_are_written_as_json(value: object, text: str) -> None:
    assert encode_output(value).decode() == text


NOT_JSON: dict[str, Any] = {
    "nan": float("nan"),
    "infinity inside": {"a": float("inf")},
    "bytes": b"bytes",
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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": [1, {"b c": object()}]}, r'object at output\.a\[1\]\["b c"\];'),
        (Point(1, [object()]), r"object at output\.y\[0\];"),
        ({"body": b"x"}, "bytes at output.body: decode them to text, or encode them as Base64;"),
        ([float("nan")], r"nan at output\[0\];"),
        ({"a": {(1, 2): 3}}, r"tuple as a key of output\.a;"),
        ({"a": "\ud800"}, r"a lone surrogate\) in the text at output\.a;"),
        ({"a": {"\udfff": 1}}, r"in the text at a key of output\.a;"),
        ({"\ud800": object()}, r"in the text at a key of output;"),
    ],
)
def test_what_is_refused_is_named_with_its_path(value: object, words: str) -> None:
    with pytest.raises(Terminal, match=words):
        encode_output(value)


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
