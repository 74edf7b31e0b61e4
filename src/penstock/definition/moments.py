"""Moments: times in a document, as text or as a number, and as text for users."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.definition.fields import excerpt_of
from penstock.spelling import nearest_name

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

FORMATS = (
    "a Unix time, a time with an offset (2027-01-31T09:00:00+01:00 or …Z),"
    ' or a local time with a "timezone" beside it'
)
LATEST = 253_402_300_799.0
"""The last second of the year 9999: a later one has no text."""


class BadMoment(ValueError):
    """A value that is no moment. Its text is shown to the user."""

    def __init__(self, problem: str, key: str = "until") -> None:
        super().__init__(f'"{key}" {problem}')
        self.key = key
        """Which key of the config is wrong."""


def parse_moment(value: Any, timezone: Any = None) -> float:
    """Seconds since the epoch. Raises `BadMoment`.

    Of a local time that comes twice when clocks are put back, it is the first; one that is left
    out when they are put forward means the time that the clock would have shown without that.
    """
    zone = _zone(timezone)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise BadMoment(f"must be {FORMATS}, not {excerpt_of(value)}")
    if not isinstance(value, str):
        return _checked(value, value)
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        raise BadMoment(f"must be {FORMATS}, not {excerpt_of(value)}") from None
    if moment.tzinfo is None:
        if zone is None:
            raise BadMoment(
                f"{excerpt_of(value)} says nothing about its time zone; add an offset, as in"
                ' 2027-01-31T09:00:00+01:00, or a "timezone" such as "Europe/Berlin"'
            )
        moment = moment.replace(tzinfo=zone)
    try:
        return _checked(moment.timestamp(), value)
    except OverflowError:
        raise BadMoment(f"{excerpt_of(value)} is out of range") from None


def _checked(seconds: float, value: Any) -> float:
    if not math.isfinite(seconds) or not 0 <= seconds <= LATEST:
        raise BadMoment(f"{excerpt_of(value)} is out of range")
    return float(seconds)


def _zone(timezone: Any) -> ZoneInfo | None:
    if timezone is None:
        return None
    if not isinstance(timezone, str):
        raise BadMoment(f"must be text, not {excerpt_of(timezone)}", "timezone")
    # only here: it costs each start some 15 ms and 4 MB
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415

    try:
        return ZoneInfo(timezone)
    except (ValueError, OSError, LookupError):  # a name that is a folder is an OSError
        near = nearest_name(timezone, sorted(available_timezones()), cutoff=0.8)
        hint = f"did you mean {near!r}?" if near else 'write it as in "Europe/Berlin"'
        raise BadMoment(f"{excerpt_of(timezone)} isn't known; {hint}", "timezone") from None


def moment_text(at: float) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    text = datetime.fromtimestamp(at, UTC).isoformat("T", "milliseconds")
    return text.removesuffix("+00:00") + "Z"
