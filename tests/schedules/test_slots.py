"""Names, ids and jitter of slots."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

from penstock.schedules.slots import jitter_seconds, slot_execution_id, slot_name, slot_named
from penstock.schedules.times import Rule, Slot, When

BOTH = Rule(cron="30 2 * * *", timezone="Europe/Berlin", repeated="both")
BEFORE = datetime(2026, 10, 24, 12, tzinfo=UTC)


def slots(rule: Rule = BOTH, count: int = 3) -> list[Slot]:
    return list(islice(When([rule]).after(BEFORE), count))


def test_a_slot_is_found_again_by_its_name() -> None:
    names = [slot_name(slot) for slot in slots()]

    assert names[:2] == [
        "2026-10-25T02:30:00[Europe/Berlin]",
        "2026-10-25T02:30:00[Europe/Berlin];2",
    ]
    assert [slot_named(name) for name in names] == slots()


def test_the_id_of_a_slots_execution_is_a_uuid_of_its_wall_time() -> None:
    first, second, _ = slots()
    execution_id = slot_execution_id("s1", first)

    assert uuid.UUID(execution_id).version == 7
    assert uuid.UUID(execution_id).variant == uuid.RFC_4122
    ms = uuid.UUID(execution_id).int >> 80
    assert datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None) == first.wall
    others = {slot_execution_id("s2", first), slot_execution_id("s1", second)}
    assert len({execution_id, *others}) == 3


def test_the_true_moment_is_not_a_part_of_the_id() -> None:
    slot = slots()[0]
    with_other_zone_files = slot._replace(at=slot.at + timedelta(hours=1))

    assert slot_execution_id("s", slot) == slot_execution_id("s", with_other_zone_files)
    assert slot_name(slot) == slot_name(with_other_zone_files)


def test_jitter_never_moves_a_slot_behind_the_next_one() -> None:
    every_minute = slots(Rule(every_seconds=60), 200)
    delays = [
        jitter_seconds("s", slot, 3600, following) for slot, following in pairwise(every_minute)
    ]

    assert all(0 <= delay < 60 for delay in delays)
    assert max(delays) > 50
    assert min(delays) < 10


def test_jitter_of_a_last_slot_is_only_cut_to_what_was_asked_for() -> None:
    slot = slots()[0]
    assert 0 <= jitter_seconds("s", slot, 30, None) < 30
    assert jitter_seconds("s", slot, 0, None) == 0
