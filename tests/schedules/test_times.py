"""When schedules fire, in particular around changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest

from penstock.schedules.times import BadWhen, Rule, Slot, When, at_of
from tests.schedules.naive import changes_of, moments

ZONES = {
    "Europe/Berlin": 2,
    "Europe/London": 2,
    "America/New_York": 2,
    "America/St_Johns": 2,  # half an hour off the others
    "America/Santiago": 2,  # at midnight
    "Australia/Lord_Howe": 2,  # by half an hour
    "Australia/Sydney": 2,
    "Africa/Casablanca": 2,  # for Ramadan
    "Asia/Beirut": 2,  # at midnight
    "Asia/Kolkata": 0,
}
EXPRESSIONS = (
    "30 2 * * *",
    "0 0 * * *",
    "0,15,30,45 0,1,2,3 * * *",
    "30 1 * * 0",
    "10 0-3 * * 0,6",
    "*/15 * * * *",
    "30 * * * *",
    "5 */2 * * *",
    "* 2 * * *",
)
POLICIES = (("shift", "first"), ("skip", "last"), ("shift", "both"), ("shift", "last"))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def slots(*rules: Rule, after: str, count: int = 4) -> list[Slot]:
    return list(islice(When(rules).after(utc(after)), count))


def times_of(*rules: Rule, after: str, count: int = 4) -> list[str]:
    return [f"{slot.at:%m-%d %H:%M:%S}" for slot in slots(*rules, after=after, count=count)]


@pytest.mark.parametrize("timezone", ZONES)
def test_slots_around_changes_of_the_clock_are_those_of_a_naive_enumeration(timezone: str) -> None:
    changes = changes_of(timezone, 2026)
    assert len(changes) == ZONES[timezone]
    for change in changes or [utc("2026-03-29")]:
        start, end = change - timedelta(hours=20), change + timedelta(hours=20)
        for expression in EXPRESSIONS:
            for missing, repeated in POLICIES:
                rule = Rule(
                    cron=expression,
                    timezone=timezone,
                    missing=missing,  # type: ignore[arg-type]
                    repeated=repeated,  # type: ignore[arg-type]
                )
                stream = When([rule]).after(start - timedelta(seconds=1))
                found = [slot.at for slot in takewhile(lambda slot: slot.at < end, stream)]  # noqa: B023
                expected = moments(expression, timezone, start, end, missing, repeated)
                assert found == expected, (expression, missing, repeated)


@pytest.mark.parametrize("timezone", ZONES)
def test_whoever_asks_at_any_moment_gets_the_same_next_slot(timezone: str) -> None:
    for change in changes_of(timezone, 2026):
        for expression in ("30 1 * * *", "*/20 * * * *", "0,15,30,45 0,1,2,3 * * *"):
            when = When([Rule(cron=expression, timezone=timezone, repeated="both")])
            start, end = change - timedelta(hours=4), change + timedelta(hours=4)
            stream = when.after(start)
            all_slots = list(takewhile(lambda slot: slot.at < end + timedelta(days=2), stream))  # noqa: B023
            moment = start
            while moment < end:
                expected = next(slot for slot in all_slots if slot.at > moment)
                assert when.next_after(moment) == expected, (expression, moment)
                moment += timedelta(minutes=10)


def test_a_wall_time_that_does_not_exist_fires_behind_the_gap_or_not_at_all() -> None:
    rule = Rule(cron="30 2 * * *", timezone="Europe/Berlin")
    skipping = Rule(cron="30 2 * * *", timezone="Europe/Berlin", missing="skip")
    after = "2026-03-28T12:00"

    assert times_of(rule, after=after, count=2) == ["03-29 01:00:00", "03-30 00:30:00"]
    assert times_of(skipping, after=after, count=2) == ["03-30 00:30:00", "03-31 00:30:00"]


def test_a_shifted_slot_keeps_its_name() -> None:
    (slot,) = slots(
        Rule(cron="30 2 * * *", timezone="Europe/Berlin"), after="2026-03-28T12:00", count=1
    )

    assert slot.is_shifted
    assert slot.wall == datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 -- a wall time
    assert f"{slot.local:%H:%M}" == "03:00"


def test_wall_times_that_are_shifted_onto_another_are_one_slot() -> None:
    rule = Rule(cron="0 2,3 * * *", timezone="Europe/Berlin")
    found = slots(rule, after="2026-03-28T12:00", count=2)

    assert [slot.wall.hour for slot in found] == [3, 2]
    assert [slot.wall.day for slot in found] == [29, 30]


def test_a_wall_time_that_comes_twice_fires_first_last_or_both_times() -> None:
    def fires(repeated: str, count: int) -> list[str]:
        rule = Rule(cron="30 2 * * *", timezone="Europe/Berlin", repeated=repeated)  # type: ignore[arg-type]
        return times_of(rule, after="2026-10-24T12:00", count=count)

    assert fires("first", 2) == ["10-25 00:30:00", "10-26 01:30:00"]
    assert fires("last", 2) == ["10-25 01:30:00", "10-26 01:30:00"]
    assert fires("both", 3) == ["10-25 00:30:00", "10-25 01:30:00", "10-26 01:30:00"]


def test_intervals_are_counted_from_the_epoch_and_do_not_drift() -> None:
    rule = Rule(every_seconds=90, offset_seconds=10)

    assert times_of(rule, after="1970-01-01T00:00:00", count=3) == [
        "01-01 00:00:10",
        "01-01 00:01:40",
        "01-01 00:03:10",
    ]
    assert times_of(rule, after="1970-01-01T00:01:41", count=1) == ["01-01 00:03:10"]


def test_a_single_time_fires_once() -> None:
    local = Rule(at="2026-10-25T09:00", timezone="Europe/Berlin")
    exact = Rule(at="2026-10-25T09:00+02:00")

    assert times_of(local, after="2026-01-01T00:00") == ["10-25 08:00:00"]
    assert times_of(exact, after="2026-01-01T00:00") == ["10-25 07:00:00"]
    assert times_of(local, after="2026-10-25T08:00") == []


def test_a_list_of_rules_fires_once_where_they_agree() -> None:
    nightly = Rule(cron="0 2 * * *")
    hourly = Rule(cron="0 1-3 * * *", timezone="Europe/London")

    assert times_of(nightly, hourly, after="2026-01-01T00:00") == [
        "01-01 01:00:00",
        "01-01 02:00:00",
        "01-01 03:00:00",
        "01-02 01:00:00",
    ]


def test_six_fields_have_seconds_in_front() -> None:
    rule = Rule(cron="*/20 0 12 * * *")
    assert times_of(rule, after="2026-01-01T12:00:00", count=3) == [
        "01-01 12:00:20",
        "01-01 12:00:40",
        "01-02 12:00:00",
    ]


def test_a_day_that_a_zone_has_left_out_fires_at_the_next_one() -> None:
    rule = Rule(cron="0 12 30 12 *", timezone="Pacific/Apia")
    assert times_of(rule, after="2011-12-01T00:00", count=1) == ["12-30 10:00:00"]


def test_the_moment_of_a_slot_can_be_found_again() -> None:
    rule = Rule(cron="0,30 1-3 * * *", timezone="Europe/Berlin", repeated="both")
    for after in ("2026-03-28T12:00", "2026-10-24T12:00"):
        for slot in slots(rule, after=after, count=20):
            assert at_of(slot.wall, slot.fold, slot.timezone) == slot.at


@pytest.mark.parametrize(
    ("rule", "code", "path", "words"),
    [
        (Rule(cron="0 0 31 2 *"), "never_fires", "when.cron", "never fires"),
        (Rule(cron="0 0 30,31 2 *"), "never_fires", "when.cron", "never fires"),
        (Rule(cron="0 25 * * *"), "bad_cron", "when.cron", "'hour' is '25'"),
        (Rule(cron="0 0 * FOO *"), "bad_cron", "when.cron", "'month' is 'FOO'"),
        (Rule(cron="0 0 * * */0"), "bad_cron", "when.cron", "'day of the week'"),
        (Rule(cron="0 0 * * 1#2/2"), "bad_cron", "when.cron", "'day of the week'"),
        (Rule(cron="*/5 * * *"), "bad_cron", "when.cron", "4 fields"),
        (Rule(cron=""), "bad_cron", "when.cron", "0 fields"),
        (Rule(cron="0 0 * * *", timezone="Europe/Berln"), "unknown_timezone", "when.timezone", "Europe/Berlin"),  # noqa: E501 -- one row
        (Rule(cron="0 0 * * *", timezone="../etc"), "unknown_timezone", "when.timezone", "such as"),
        (Rule(cron="0 0 * * *", timezone="Europe"), "unknown_timezone", "when.timezone", ""),
        (Rule(every_seconds=0.5), "too_frequent", "when.every_seconds", "1 second"),
        (Rule(every_seconds=0), "too_frequent", "when.every_seconds", "1 second"),
        (Rule(every_seconds=float("nan")), "bad_when", "when.every_seconds", "number"),
        (Rule(every_seconds=1e300), "never_fires", "when.every_seconds", "too long"),
        (Rule(at="tomorrow"), "bad_when", "when.at", "tomorrow"),
        (Rule(at="9999-12-31T23:59:59"), "bad_when", "when.at", "9999"),
        (Rule(at="0001-01-01T00:00:00"), "bad_when", "when.at", "0001"),
        (Rule(cron="0 0 * * *", timezone="localtime"), "unknown_timezone", "when.timezone", ""),
        (Rule(cron="0 0 * * *", timezone="right/UTC"), "unknown_timezone", "when.timezone", ""),
        (Rule(at="2026-01-01", every_seconds=5), "bad_when", "when", "exactly one"),
        (Rule(), "bad_when", "when", "exactly one"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(rule: Rule, code: str, path: str, words: str) -> None:
    with pytest.raises(BadWhen) as caught:
        When([rule])

    assert (caught.value.code, caught.value.path) == (code, path)
    assert words in str(caught.value)


def test_of_a_list_the_wrong_rule_is_named() -> None:
    with pytest.raises(BadWhen) as caught:
        When([Rule(cron="0 0 * * *"), Rule(cron="nonsense")])
    assert caught.value.path == "when[1].cron"


def test_a_list_has_at_least_one_rule_and_not_too_many() -> None:
    with pytest.raises(BadWhen, match="no rule"):
        When([])
    with pytest.raises(BadWhen, match="limit is 20"):
        When([Rule(every_seconds=5)] * 21)
