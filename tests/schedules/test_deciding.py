"""Which of the slots that are due start, wait or are skipped."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.schedules.deciding import (
    BEYOND_MAX,
    FROM_PAST,
    MANY_QUEUED,
    OLDER,
    ON_TIME_SECONDS,
    ONE_QUEUED,
    OUTSIDE,
    QUEUED_MAX,
    REPLACED,
    ROWS_MAX,
    STILL_RUNNING,
    TOO_MANY,
    Decision,
    decide,
    due_at,
    first_slot,
)
from penstock.schedules.model import Catchup, Definition
from penstock.schedules.times import Rule, When

T0 = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
HOURLY = (Rule(cron="0 * * * *"),)
EVERY_10_S = (Rule(every_seconds=10),)
HOUR = 3600.0


def decided(
    since: float,
    now: float,
    *,
    is_running: bool = False,
    queued: int = 0,
    **fields: Any,
) -> Decision:
    """The decision about a schedule whose next slot is the first one after `since`."""
    definition = Definition(workflow="report", **{"when": HOURLY, **fields})
    when = When(definition.when)
    slot = first_slot(definition, when, since)
    assert slot is not None
    return decide("s", definition, when, slot, now, is_running=is_running, queued=queued)


def outcomes(decision: Decision) -> list[tuple[str, str | None]]:
    return [(verdict.outcome, verdict.reason) for verdict in decision.verdicts]


def next_at(decision: Decision) -> float | None:
    return None if decision.next_slot is None else decision.next_slot.at.timestamp()


def test_a_slot_starts_at_its_time_and_not_before() -> None:
    early = decided(T0 + 1, T0 + HOUR - 0.001)
    assert early.verdicts == []
    assert next_at(early) == T0 + HOUR

    on_time = decided(T0 + 1, T0 + HOUR)
    assert outcomes(on_time) == [("started", None)]
    assert next_at(on_time) == T0 + 2 * HOUR


def test_a_slot_is_on_time_while_a_new_owner_takes_over() -> None:
    assert outcomes(decided(T0 + 1, T0 + HOUR + ON_TIME_SECONDS)) == [("started", None)]
    assert outcomes(decided(T0 + 1, T0 + HOUR + ON_TIME_SECONDS + 1)) == [("late", FROM_PAST)]


def test_the_newest_missed_slot_is_caught_up_by_default() -> None:
    decision = decided(T0 + 1, T0 + 3.5 * HOUR)
    assert outcomes(decision) == [("skipped", OLDER), ("skipped", OLDER), ("late", FROM_PAST)]
    assert next_at(decision) == T0 + 4 * HOUR


def test_a_slot_that_is_due_now_makes_the_last_missed_one_unnecessary() -> None:
    assert outcomes(decided(T0 + 1, T0 + 2 * HOUR)) == [("skipped", OLDER), ("started", None)]


def test_all_missed_slots_are_caught_up_within_the_window_and_up_to_a_number() -> None:
    catchup = Catchup("all", window_seconds=3.2 * HOUR, max=2)
    decision = decided(T0 + 1, T0 + 5.1 * HOUR, catchup=catchup, overlap="allow")
    assert outcomes(decision) == [
        ("skipped", OUTSIDE),
        ("skipped", BEYOND_MAX.format(2)),
        ("skipped", BEYOND_MAX.format(2)),
        ("late", FROM_PAST),
        ("late", FROM_PAST),
    ]


def test_no_missed_slot_is_caught_up_if_none_is_wanted() -> None:
    decision = decided(T0 + 1, T0 + 2 * HOUR, catchup=Catchup("skip"))
    assert outcomes(decision) == [("skipped", FROM_PAST), ("started", None)]


def test_a_slot_outside_the_window_is_not_caught_up() -> None:
    decision = decided(T0 + 1, T0 + 1.5 * HOUR, catchup=Catchup(window_seconds=60))
    assert outcomes(decision) == [("skipped", OUTSIDE)]


@pytest.mark.parametrize(
    ("overlap", "queued", "expected"),
    [
        ("skip", 0, ("skipped", STILL_RUNNING)),
        ("queue_one", 0, ("queued", STILL_RUNNING)),
        ("queue_one", 1, ("skipped", ONE_QUEUED)),
        ("queue_all", QUEUED_MAX - 1, ("queued", STILL_RUNNING)),
        ("queue_all", QUEUED_MAX, ("skipped", MANY_QUEUED)),
        ("cancel_old", 1, ("queued", STILL_RUNNING)),
        ("allow", 0, ("started", None)),
    ],
)
def test_what_happens_while_an_earlier_execution_runs(
    overlap: str, queued: int, expected: tuple[str, str | None]
) -> None:
    decision = decided(T0 + 1, T0 + HOUR, is_running=True, queued=queued, overlap=overlap)
    assert outcomes(decision) == [expected]
    assert decision.cancels_running == (overlap == "cancel_old")


def test_slots_that_are_caught_up_together_overlap_too() -> None:
    def caught_up(overlap: str) -> list[str]:
        catchup = Catchup("all")
        decision = decided(T0 + 1, T0 + 3.1 * HOUR, catchup=catchup, overlap=overlap)
        return [verdict.outcome for verdict in decision.verdicts]

    assert caught_up("skip") == ["late", "skipped", "skipped"]
    assert caught_up("queue_one") == ["late", "queued", "skipped"]
    assert caught_up("queue_all") == ["late", "queued", "queued"]
    assert caught_up("allow") == ["late", "late", "late"]


def test_of_slots_that_cancel_each_other_the_newest_is_left() -> None:
    decision = decided(
        T0 + 1, T0 + 3.1 * HOUR, catchup=Catchup("all"), overlap="cancel_old", is_running=True
    )
    assert outcomes(decision) == [
        ("skipped", REPLACED),
        ("skipped", REPLACED),
        ("queued", STILL_RUNNING),
    ]


def test_a_slot_that_would_be_cancelled_at_once_is_not_started() -> None:
    decision = decided(T0 + 1, T0 + 2.1 * HOUR, catchup=Catchup("all"), overlap="cancel_old")
    assert outcomes(decision) == [("skipped", REPLACED), ("late", FROM_PAST)]
    assert not decision.cancels_running


def test_a_queued_slot_goes_first_even_if_nothing_runs() -> None:
    decision = decided(T0 + 1, T0 + HOUR, queued=1, overlap="queue_all")
    assert outcomes(decision) == [("queued", STILL_RUNNING)]


def test_a_schedule_has_no_slots_before_it_begins_and_after_it_ends() -> None:
    fields: dict[str, Any] = {"from_at": T0 + 2 * HOUR, "until_at": T0 + 4 * HOUR}
    decision = decided(T0, T0 + 2 * HOUR, **fields)
    assert outcomes(decision) == [("started", None)]
    assert next_at(decision) == T0 + 3 * HOUR

    last = decided(T0 + 2.5 * HOUR, T0 + 3 * HOUR, **fields)
    assert outcomes(last) == [("started", None)]
    assert last.next_slot is None


def test_a_schedule_that_has_not_begun_waits_for_its_first_slot() -> None:
    decision = decided(T0, T0 + HOUR, from_at=T0 + 10 * HOUR)
    assert decision.verdicts == []
    assert next_at(decision) == T0 + 10 * HOUR


def test_jitter_delays_a_slot_and_not_the_ones_after_it() -> None:
    definition = Definition(workflow="report", when=EVERY_10_S, jitter_seconds=3600)
    when = When(definition.when)
    slot = first_slot(definition, when, T0)
    assert slot is not None
    at = due_at("s", definition, when, slot)
    assert T0 + 10 < at < T0 + 20

    early = decide("s", definition, when, slot, at - 0.001, is_running=False)
    assert (early.verdicts, early.next_slot) == ([], slot)
    (started,) = decide("s", definition, when, slot, at, is_running=False).verdicts
    assert (started.slot, started.outcome) == (slot, "started")


def test_an_outage_of_a_year_of_a_schedule_of_each_second_is_bounded() -> None:
    began = time.monotonic()
    decision = decided(T0, T0 + 365 * 86400, when=(Rule(cron="* * * * * *"),))
    assert time.monotonic() - began < 5
    counted = Counter(verdict.outcome for verdict in decision.verdicts)
    assert len(decision.verdicts) == ROWS_MAX + 1
    assert decision.verdicts[0].reason == TOO_MANY
    assert counted["started"] == 1


def test_slots_around_a_change_of_the_clock_all_get_a_verdict() -> None:
    start = datetime(2026, 10, 24, 20, tzinfo=UTC).timestamp()
    rules = (Rule(cron="*/30 * * * *", timezone="Europe/Berlin"),)
    decision = decided(start, start + 8 * HOUR, when=rules)
    walls = [f"{v.slot.wall:%H:%M}/{v.slot.fold}" for v in decision.verdicts]
    assert walls == [
        "22:30/0", "23:00/0", "23:30/0", "00:00/0", "00:30/0", "01:00/0", "01:30/0", "02:00/0",
        "02:30/0", "02:00/1", "02:30/1", "03:00/0", "03:30/0", "04:00/0", "04:30/0", "05:00/0",
    ]  # fmt: skip
