"""Templates in the input of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.schedules.inputs import BadTemplate, check_templates, render, slot_fields
from penstock.schedules.times import Rule, When

BEFORE = datetime(2026, 10, 24, 12, tzinfo=UTC)
SLOT = When([Rule(cron="30 0 * * *", timezone="Europe/Berlin")]).next_after(BEFORE)


def test_an_input_is_told_of_its_slot() -> None:
    assert SLOT is not None
    fields = slot_fields("nightly", SLOT, None)
    assert fields == {
        "time": "2026-10-24T22:30:00Z",
        "local": "2026-10-25T00:30:00+02:00",
        "local_date": "2026-10-25",
        "previous": None,
        "name": "nightly",
    }
    assert slot_fields("nightly", SLOT, BEFORE)["previous"] == "2026-10-24T12:00:00Z"

    value = {
        "day": "{{ slot.local_date }}",
        "since": "{{slot.previous}}",
        "title": "{{ slot.name }} of {{ slot.local_date }} after {{ slot.previous }}",
        "list": [1, None, {"deep": "{{ slot.time }}"}],
        "plain": "{ not a template }",
    }
    assert render(value, fields) == {
        "day": "2026-10-25",
        "since": None,
        "title": "nightly of 2026-10-25 after ",
        "list": [1, None, {"deep": "2026-10-24T22:30:00Z"}],
        "plain": "{ not a template }",
    }


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ({"a": ["{{ slot.lokal }}"]}, "input.a[0]", "did you mean slot.local?"),
        ({"a": "on {{ input.day }}"}, "input.a", "slot.local_date"),
        ({"a": "{{ slot }}"}, "input.a", "slot.time"),
    ],
)
def test_a_template_that_is_not_about_the_slot_is_refused(
    value: object, path: str, words: str
) -> None:
    with pytest.raises(BadTemplate) as caught:
        check_templates(value)
    assert caught.value.path == path
    assert words in str(caught.value)


def test_an_input_is_nested_only_so_deep() -> None:
    value: object = "x"
    for _ in range(200):
        value = [value]
    with pytest.raises(BadTemplate, match="100 deep"):
        check_templates(value)
