"""Lists in pages, and the parameters that choose them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from fastapi import Query

from penstock.api.problems import Refused

Row = TypeVar("Row")
Limit = Annotated[int, Query(ge=1, le=500, description="How many at most.")]
Cursor = Annotated[
    str | None, Query(description="`next_cursor` of the page before.", max_length=4096)
]
Moment = Annotated[
    str | None,
    Query(description="ISO 8601; without a zone it is UTC.", examples=["2026-01-31T12:00:00Z"]),
]


def page(
    rows: Sequence[Row], limit: int, view: Callable[[Row], Any], cursor_of: Callable[[Row], Any]
) -> dict[str, Any]:
    """A page of a list. `rows` has one more than `limit` if there is another page."""
    shown = rows[:limit]
    more = encode(cursor_of(shown[-1])) if len(rows) > limit else None
    return {"items": [view(row) for row in shown], "next_cursor": more}


def encode(position: Any) -> str:
    return base64.urlsafe_b64encode(str(position).encode()).decode().rstrip("=")


def text_cursor(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        return base64.b64decode(
            cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True
        ).decode()
    except (binascii.Error, UnicodeError, ValueError):
        raise Refused(
            422, "invalid_request", "the cursor isn't one of ours; take next_cursor as it is"
        ) from None


def number_cursor(cursor: str | None) -> int | None:
    text = text_cursor(cursor)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:  # noqa: PLR2004 -- fits into 64 bits
        raise Refused(
            422, "invalid_request", "the cursor isn't one of ours; take next_cursor as it is"
        )
    return int(text)


def moment(text: str | None, name: str) -> float | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        message = f"{name} is {text[:50]!r}; it must be a time such as 2026-01-31T12:00:00Z"
        raise Refused(422, "invalid_request", message) from None
