"""A naive reference for cron expressions: every minute of a few days is looked at, one by one.

It knows nothing of rules about changes of the clock but what the documentation says.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
MARGIN = timedelta(hours=6)
"""What is looked at around the range: something may be shifted into it, or out of it."""


def matches(expression: str, wall: datetime) -> bool:
    minute, hour, day, month, weekday = expression.split()
    return (
        _matches(minute, wall.minute)
        and _matches(hour, wall.hour)
        and _matches(day, wall.day)
        and _matches(month, wall.month)
        and _matches(weekday, wall.isoweekday() % 7)
    )


def _matches(field: str, value: int) -> bool:
    if field == "*":
        return True
    if field.startswith("*/"):
        return value % int(field[2:]) == 0
    if "-" in field:
        first, last = field.split("-")
        return int(first) <= value <= int(last)
    return value in {int(part) for part in field.split(",")}


def moments(
    expression: str, timezone: str, start: datetime, end: datetime, missing: str, repeated: str
) -> list[datetime]:
    """The moments from `start` on and before `end`, both in UTC, at which an expression fires."""
    minute, hour, *_ = expression.split()
    by_real_time = "*" in (minute[0], hour[0])
    real = _real_minutes(timezone, start - MARGIN, end + MARGIN)
    if by_real_time:
        fired = {moment for moment, wall in real if matches(expression, wall)}
    else:
        fired = _by_wall_time(expression, real, missing, repeated)
    return sorted(moment for moment in fired if start <= moment < end)


@lru_cache(maxsize=4)
def _real_minutes(timezone: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Each minute, with what clocks show then."""
    zone = ZoneInfo(timezone)
    moment = start
    real: list[tuple[datetime, datetime]] = []
    while moment < end:
        real.append((moment, moment.astimezone(zone).replace(tzinfo=None)))
        moment += MINUTE
    return real


def _by_wall_time(
    expression: str, real: list[tuple[datetime, datetime]], missing: str, repeated: str
) -> set[datetime]:
    shown: dict[datetime, list[datetime]] = {}
    for moment, wall in real:
        shown.setdefault(wall, []).append(moment)
    fired: set[datetime] = set()
    wall = real[0][1]
    behind_gap: dict[datetime, datetime] = {}
    for (_, earlier), (moment, later) in pairwise(real):
        gap = earlier + MINUTE
        while gap < later:
            behind_gap[gap] = moment
            gap += MINUTE
    while wall < real[-1][1]:
        if matches(expression, wall):
            times = shown.get(wall, [])
            if not times:
                if missing == "shift":
                    fired.add(behind_gap[wall])
            elif repeated == "first":
                fired.add(times[0])
            elif repeated == "last":
                fired.add(times[-1])
            else:
                fired.update(times)
        wall += MINUTE
    return fired


@cache
def changes_of(timezone: str, year: int) -> list[datetime]:
    """The moments in a year at which clocks in a zone are changed."""
    zone = ZoneInfo(timezone)
    moment = datetime(year, 1, 1, tzinfo=UTC)
    found: list[datetime] = []
    offset = moment.astimezone(zone).utcoffset()
    while moment.year == year:
        if moment.astimezone(zone).utcoffset() != offset:
            offset = moment.astimezone(zone).utcoffset()
            found.append(moment)
        moment += timedelta(minutes=30)
    return found
