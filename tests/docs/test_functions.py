"""docs/functions.md lists the functions that there are, with examples that are true."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from penstock.definition.cel import cel_program, evaluate_cel
from penstock.definition.functions import CHEAP_FUNCTIONS, CHEAP_METHODS, FUNCTIONS, METHODS
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "functions.md"
ROW = re.compile(
    r"^\| (?P<calls>`[^|]*\)`) \| (?P<meaning>[^|]+) \| `(?P<example>.+?)` \| `(?P<result>.+?)` \|$"
)
CALL = re.compile(r"`(?:(?P<receiver>text|list|time|x)\.)?(?P<name>[\w.]+)\(")


class Row(NamedTuple):
    calls: list[tuple[str | None, str]]
    example: str
    result: Any


def rows() -> list[Row]:
    matches = [ROW.match(line) for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return [
        Row(
            [(call["receiver"], call["name"]) for call in CALL.finditer(row["calls"])],
            row["example"],
            json.loads(row["result"]),
        )
        for row in matches
        if row
    ]


def test_the_page_lists_every_function_and_no_other():
    listed = [call for row in rows() for call in row.calls]
    assert {name for receiver, name in listed if receiver is None} == FUNCTIONS
    assert {name for receiver, name in listed if receiver is not None} == METHODS
    assert CHEAP_FUNCTIONS < FUNCTIONS
    assert CHEAP_METHODS < METHODS


@pytest.mark.parametrize("row", rows(), ids=[row.example for row in rows()])
def test_an_example_gives_what_stands_beside_it(row: Row):
    assert all(f"{name}(" in row.example for _, name in row.calls)
    value = evaluate_cel(row.example, {})
    assert (value, type(value)) == (row.result, type(row.result))


def test_what_an_expression_gives_does_not_depend_on_the_time():
    for name in ("now()", "timestamp.now()", "uuid()", "random()"):
        with pytest.raises(ValueError, match="undeclared reference"):
            cel_program(name, ())
