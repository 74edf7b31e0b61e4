"""Lists in pages, and the parameters that choose them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from penstock.api.parameters import Query
from penstock.api.problems import Refused
from penstock.views.pages import Page
from penstock.views.times import parse_moment

Row = TypeVar("Row")
Item = TypeVar("Item")
NUMBER_DIGITS_MAX = 18
"""Digits of a number in a cursor: it fits into 64 bits."""
Limit = Annotated[int, Query(ge=1, le=500, description="How many at most.")]
Cursor = Annotated[
    str | None, Query(description="`next_cursor` of the page before.", max_length=4096)
]
Moment = Annotated[
    str | None,
    Query(description="ISO 8601; without a zone it is UTC.", examples=["2026-01-31T12:00:00Z"]),
]


def page(
    rows: Sequence[Row], limit: int, view: Callable[[Row], Item], cursor_of: Callable[[Row], Any]
) -> Page[Item]:
    """A page of a list. `rows` has one more than `limit` if there is another page."""
    page_rows = rows[:limit]
    has_next = len(rows) > limit
    items = [view(row) for row in page_rows]
    return Page(items, encode(cursor_of(page_rows[-1])) if has_next else None)


def encode(position: Any) -> str:
    """A position as a cursor."""
    encoded = base64.urlsafe_b64encode(str(position).encode())
    return encoded.decode().rstrip("=")


def text_cursor(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        padding = b"=" * (-len(cursor) % 4)
        return base64.b64decode(cursor.encode() + padding, b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        raise _invalid_cursor() from None


def number_cursor(cursor: str | None) -> int | None:
    text = text_cursor(cursor)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > NUMBER_DIGITS_MAX:
        raise _invalid_cursor()
    return int(text)


def _invalid_cursor() -> Refused:
    return Refused(
        422, "invalid_request", "the cursor isn't one of ours; take next_cursor as it is"
    )


def moment(text: str | None, name: str) -> float | None:
    """A time that was sent as a parameter, in seconds since the epoch."""
    if text is None:
        return None
    # a plus in a URL is decoded as a space
    iso_text = text.replace(" ", "+") if "T" in text else text
    try:
        return parse_moment(iso_text)
    except ValueError:
        message = f"{name} is {text[:50]!r}; it must be a time such as 2026-01-31T12:00:00Z"
        raise Refused(422, "invalid_request", message) from None
