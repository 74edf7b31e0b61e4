"""When a schedule fires: cron expressions, intervals and single times, in a time zone.

A cron expression is about wall times. They are enumerated without a zone, by CronSim, and then
mapped to real time. Around a change of the clock that needs a rule:

- A wall time that doesn't exist fires at the first moment after the gap (`missing: shift`), or
  not at all (`skip`).
- One that comes twice fires the `first` time, the `last` time or `both` times.
- An expression whose minute or hour begins with `*` goes by real time: `*/15 * * * *` fires every
  quarter of an hour, also in the hour that comes twice. That is the same as `skip` and `both`.

What fires at the same moment is one slot: `0 2,3 * * *` fires once at three o'clock on the day on
which two o'clock doesn't exist.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import msgspec
from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from penstock.spelling import nearest_name

INTERVAL_SECONDS_MIN = 1
RULES_MAX = 20
"""Rules in the list of one schedule."""
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Nothing fires after this; datetimes near the end of what Python has can't be converted."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ONE_DAY = timedelta(days=1)
ONE_SECOND = timedelta(seconds=1)
YEARS = range(1970, 9000)
HOST_ZONES = ("localtime", "posixrules", "posix/", "right/")
"""Files that some hosts have beside the zones; `localtime` is another zone on each host."""
FIELD_NAMES = ("second", "minute", "hour", "day of the month", "month", "day of the week")

Missing = Literal["shift", "skip"]
Repeated = Literal["first", "last", "both"]


class BadWhen(ValueError):
    """A `when` that can't be used. `code` and `path` say what is wrong, and where."""

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.path = path


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One rule of a schedule: exactly one of `cron`, `every_seconds` and `at`."""

    cron: str | None = None
    every_seconds: float | None = None
    offset_seconds: float = 0
    at: str | None = None
    timezone: str = "UTC"
    missing: Missing = "shift"
    repeated: Repeated = "first"


class Slot(NamedTuple):
    """A moment at which a schedule fires. Its name is its wall time, not the moment.

    Two machines whose zone files differ disagree about the moment, and agree about the name.
    """

    at: datetime
    """The moment, in UTC."""
    wall: datetime
    """The wall time that the rule names, without a zone; it may not exist on that day."""
    fold: int
    """1: the second time that the wall time comes."""
    timezone: str

    @property
    def local(self) -> datetime:
        """The moment as clocks in the zone show it."""
        return self.at.astimezone(ZoneInfo(self.timezone))

    @property
    def is_shifted(self) -> bool:
        """Whether the wall time doesn't exist, so that the slot has been moved behind the gap."""
        return self.local.replace(tzinfo=None) != self.wall


class When:
    """The rules of a schedule, checked. Raises `BadWhen`."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        if not rules:
            raise BadWhen("bad_when", "when", "there is no rule that says when it starts")
        if len(rules) > RULES_MAX:
            message = f"there are {len(rules)} rules; the limit is {RULES_MAX}"
            raise BadWhen("bad_when", "when", message)
        self.rules = tuple(rules)
        for index, rule in enumerate(rules):
            _check(rule, "when" if len(rules) == 1 else f"when[{index}]")

    def after(self, moment: datetime) -> Iterator[Slot]:
        """The slots behind a moment in UTC, in order; not the one at that moment itself."""
        streams = [_slots_of(rule, moment) for rule in self.rules]
        last = moment
        for slot in heapq.merge(*streams, key=_order):
            if slot.at > last:
                last = slot.at
                yield slot

    def next_after(self, moment: datetime) -> Slot | None:
        return next(self.after(moment), None)


def at_of(wall: datetime, fold: int, timezone: str) -> datetime:
    """The moment of a wall time, by the zone files of this machine.

    That of one that doesn't exist is the first after the gap.
    """
    zone = ZoneInfo(timezone)
    moment = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    return _end_of_gap(wall, zone)


Order = tuple[datetime, bool, datetime, int, str]


def _order(slot: Slot) -> Order:
    """At the same moment, a wall time that exists goes before those that were shifted there."""
    return (slot.at, slot.is_shifted, slot.wall, slot.fold, slot.timezone)


def _check(rule: Rule, path: str) -> None:
    kinds = [rule.cron, rule.every_seconds, rule.at]
    if sum(kind is not None for kind in kinds) != 1:
        message = "it needs exactly one of 'cron', 'every_seconds' and 'at'"
        raise BadWhen("bad_when", path, message)
    _check_timezone(rule.timezone, path)
    if rule.cron is not None:
        _check_cron(rule.cron, f"{path}.cron")
    elif rule.every_seconds is not None:
        _check_interval(rule, path)
    elif rule.at is not None:
        _check_at(rule.at, f"{path}.at")


def _check_timezone(name: str, path: str) -> None:
    if not _is_timezone(name):
        nearest = nearest_name(name, sorted(available_timezones()))
        hint = f"; did you mean {nearest!r}?" if nearest else ", such as 'Europe/Berlin' or 'UTC'"
        message = f"there is no time zone {name[:100]!r}{hint}"
        raise BadWhen("unknown_timezone", f"{path}.timezone", message)


def _is_timezone(name: str) -> bool:
    if name.startswith(HOST_ZONES):
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder
        return False
    return True


def _check_cron(expression: str, path: str) -> None:
    fields = expression.upper().split()
    if len(fields) not in (5, 6):
        message = (
            f"it has {len(fields)} fields; it needs 5 (minute, hour, day of the month, month, day"
            " of the week), or 6 with seconds in front"
        )
        raise BadWhen("bad_cron", path, message)
    first = 6 - len(fields)
    for number, text in enumerate(fields, start=first):
        _check_field(Field(number), text, path)
    try:
        fires = next(CronSim(expression, datetime(2024, 1, 1)), None) is not None  # noqa: DTZ001
    except CronSimError:  # each field can be read, so together they name no day
        fires = False
    if not fires:
        message = f"{expression!r} never fires: no month has such a day"
        raise BadWhen("never_fires", path, message)


def _check_field(field: Field, text: str, path: str) -> None:
    try:
        field.parse(text)
    except (CronSimError, AssertionError):
        message = f"its field {FIELD_NAMES[field]!r} is {text[:100]!r}, which can't be read"
        raise BadWhen("bad_cron", path, message) from None


def _check_interval(rule: Rule, path: str) -> None:
    seconds = rule.every_seconds or 0.0
    if not math.isfinite(seconds) or not math.isfinite(rule.offset_seconds):
        raise BadWhen("bad_when", f"{path}.every_seconds", "it must be a number of seconds")
    if seconds < INTERVAL_SECONDS_MIN:
        message = f"it is {seconds:g}; the shortest interval is {INTERVAL_SECONDS_MIN} second"
        raise BadWhen("too_frequent", f"{path}.every_seconds", message)
    if seconds > timedelta.max.total_seconds() / 1000:
        raise BadWhen("never_fires", f"{path}.every_seconds", f"{seconds:g} seconds are too long")


def _check_at(text: str, path: str) -> None:
    try:
        check_year(datetime.fromisoformat(text))
    except ValueError:
        message = f"{text[:100]!r} isn't a time, such as '2026-11-20T09:30:00'"
        raise BadWhen("bad_when", path, message) from None


def check_year(moment: datetime) -> None:
    """Raise `ValueError` for years in which Python can't convert between zones, or nearly so."""
    if moment.year not in YEARS:
        raise ValueError(f"the year is {moment.year}")


def _slots_of(rule: Rule, moment: datetime) -> Iterator[Slot]:
    if rule.cron is not None:
        return _cron_slots(rule, rule.cron, moment)
    if rule.every_seconds is not None:
        return _interval_slots(rule, rule.every_seconds, moment)
    return _single_slot(rule, rule.at or "", moment)


def _interval_slots(rule: Rule, seconds: float, moment: datetime) -> Iterator[Slot]:
    """Slots at multiples of the interval from the epoch: they don't drift, whoever asks when."""
    interval = timedelta(seconds=seconds)
    origin = EPOCH + timedelta(seconds=math.fmod(rule.offset_seconds, seconds))
    at = origin + interval * ((moment - origin) // interval + 1)
    while at < LATEST:
        yield Slot(at, at.replace(tzinfo=None), 0, "UTC")
        at += interval


def _single_slot(rule: Rule, text: str, moment: datetime) -> Iterator[Slot]:
    wall = datetime.fromisoformat(text)
    if wall.tzinfo is not None:  # the moment itself, whatever clocks show
        at = wall.astimezone(UTC)
        slots = [Slot(at, at.replace(tzinfo=None), 0, "UTC")]
    else:
        slots = _moments_of(wall, rule.timezone, rule.missing, rule.repeated)
    return (slot for slot in slots if slot.at > moment)


def _cron_slots(rule: Rule, expression: str, moment: datetime) -> Iterator[Slot]:
    missing, repeated = rule.missing, rule.repeated
    if _goes_by_real_time(expression):
        missing, repeated = "skip", "both"
    zone = ZoneInfo(rule.timezone)
    # the second time that a wall time comes is later than wall times which follow it
    waiting: list[tuple[Order, Slot]] = []
    start = _earliest_wall(moment, zone) - ONE_SECOND
    for wall in CronSim(expression, start):
        earliest = at_of(wall, 0, rule.timezone)
        while waiting and waiting[0][1].at < earliest:
            yield heapq.heappop(waiting)[1]
        if earliest > LATEST:
            return
        for slot in _moments_of(wall, rule.timezone, missing, repeated):
            if slot.at > moment:
                heapq.heappush(waiting, (_order(slot), slot))
    while waiting:
        yield heapq.heappop(waiting)[1]


def _goes_by_real_time(expression: str) -> bool:
    *_, minute, hour, _, _, _ = expression.split()
    return minute.startswith("*") or hour.startswith("*")


def _earliest_wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """The earliest wall time that comes behind a moment: soon clocks may be put back."""
    local = moment.astimezone(zone)
    wall = local.replace(tzinfo=None, microsecond=0)
    offset = local.utcoffset() or timedelta()
    offset_tomorrow = (moment + ONE_DAY).astimezone(zone).utcoffset() or timedelta()
    return wall - max(timedelta(), offset - offset_tomorrow)


def _moments_of(wall: datetime, timezone: str, missing: Missing, repeated: Repeated) -> list[Slot]:
    """The moments at which a wall time fires, in order: none, one, or two."""
    zone = ZoneInfo(timezone)
    first = wall.replace(tzinfo=zone, fold=0)
    first_at = first.astimezone(UTC)
    if first_at.astimezone(zone).replace(tzinfo=None) != wall:
        if missing == "skip":
            return []
        return [Slot(_end_of_gap(wall, zone), wall, 0, timezone)]

    last_at = first.replace(fold=1).astimezone(UTC)
    if last_at == first_at:
        return [Slot(first_at, wall, 0, timezone)]
    slots: list[Slot] = []
    if repeated != "last":
        slots.append(Slot(first_at, wall, 0, timezone))
    if repeated != "first":
        slots.append(Slot(last_at, wall, 1, timezone))
    return slots


def _end_of_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first moment after the gap that a wall time is in."""
    before = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    after = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    offset_after = after.astimezone(zone).utcoffset()
    while after - before > ONE_SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset_after:
            after = middle
        else:
            before = middle
    return after.replace(microsecond=0)
