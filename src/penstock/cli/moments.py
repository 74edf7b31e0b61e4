"""Times that users write: `2d` for two days ago, or a date and time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

AGE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
SINCE_HELP = "at or after this time: 45m, 1h or 2d ago, or 2026-01-31T12:00:00Z."
UNTIL_HELP = "before this time."


def age_seconds(text: str) -> float | None:
    """The seconds of an age such as `45m`; None if the text isn't one."""
    match = AGE.fullmatch(text.strip().lower())
    if match is None:
        return None
    return float(match[1]) * SECONDS[match[2]]


def as_moment(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> datetime | None:
    """Read the value of an option: an age, or ISO 8601, where a time without a zone is UTC."""
    if value is None:
        return None
    try:
        return moment(value, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is neither an age such as 45m, 1h or 2d"
            " nor a time such as 2026-01-31T12:00:00Z"
        ) from None


def moment(text: str, now: datetime) -> datetime:
    """The time that a text means. Raises `ValueError` or `OverflowError` if it means none."""
    seconds = age_seconds(text)
    if seconds is not None:
        return now - timedelta(seconds=seconds)
    at = datetime.fromisoformat(text.strip())
    return at if at.tzinfo else at.replace(tzinfo=UTC)
