"""Times as users see them: text in UTC, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload


@overload
def time_text(at: float) -> str: ...
@overload
def time_text(at: float | None) -> str | None: ...
def time_text(at: float | None) -> str | None:
    if at is None:
        return None
    # positional: of an execution's view, most time is spent here, and names cost a tenth of it
    text = datetime.fromtimestamp(at, UTC).isoformat("T", "milliseconds")
    return text.removesuffix("+00:00") + "Z"


def parse_moment(text: str) -> float:
    """The seconds since the epoch of a time in ISO 8601; without a zone it is UTC.

    Raises `ValueError`.
    """
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return at.timestamp()
    except OverflowError as error:
        raise ValueError(str(error)) from None


@overload
def seconds_of(text: str) -> float: ...
@overload
def seconds_of(text: str | None) -> float | None: ...
def seconds_of(text: str | None) -> float | None:
    """The seconds since the epoch that `time_text` was made of."""
    return None if text is None else datetime.fromisoformat(text).timestamp()
