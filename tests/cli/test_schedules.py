"""`penstock schedules`, against `penstock dev`: real processes on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.commands import nodes, write
from tests.cli.serving import Desk, dev
from tests.waiting import until_now

REPORT = {**nodes({"id": "a", "handler": "noop"}), "name": "report"}
NIGHTLY = {
    "name": "nightly",
    "workflow": "report",
    "when": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    "from": "2035-10-27T00:00:00Z",
}
TICKING = {"workflow": "report", "when": {"every_seconds": 1}, "overlap": "allow"}
FILES = {
    "report.json": json.dumps(REPORT),
    "nightly.json": json.dumps(NIGHTLY),
    "ticking.json": json.dumps(TICKING),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("schedules")
    write(folder, FILES)
    with dev(folder) as url:
        desk = Desk(folder, url)
        desk.out("put", "report.json")
        yield desk


def test_a_schedule_is_put_listed_explained_paused_and_deleted(desk: Desk) -> None:
    created = desk.out("schedules", "put", "nightly.json")
    assert created == "created nightly, next 2035-10-27T02:30:00+02:00"
    assert desk.out("schedules", "put", "nightly.json").startswith("changed nightly")
    assert "30 2 * * * Europe/Berlin" in desk.out("schedules", "list")
    assert [item["name"] for item in desk.json("schedules", "list")["items"]] == ["nightly"]
    assert desk.json("schedules", "show", "nightly")["workflow"] == "report"

    upcoming = desk.out("schedules", "next", "nightly", "--count", "3").splitlines()
    assert len(upcoming) == 4
    assert "02:30 comes twice on this day" in upcoming[2]
    assert len(desk.json("schedules", "next", "nightly")["items"]) == 10

    assert desk.out("schedules", "pause", "nightly", "--reason", "holidays") == "paused nightly"
    explained = desk("schedules", "explain", "nightly")
    assert "It starts nothing: it is paused (holidays)." in explained.stdout
    assert desk.json("schedules", "explain", "nightly")["schedule"]["paused"]
    assert desk.out("schedules", "resume", "nightly") == "resumed nightly"

    execution_id = desk.out("schedules", "trigger", "nightly")
    shown = desk.json("show", execution_id)
    assert shown["labels"] == {"schedule": "nightly"}
    assert desk.out("schedules", "delete", "nightly") == "deleted nightly"
    assert desk("schedules", "show", "nightly").returncode == 2


def test_slots_are_listed_with_what_became_of_them(desk: Desk) -> None:
    desk.out("schedules", "put", "ticking.json", "--name", "ticking")
    until_now(lambda: len(desk.json("schedules", "slots", "ticking")["items"]) > 1)
    desk.out("schedules", "delete", "ticking")


def test_a_schedule_that_can_not_be_used_is_refused_with_the_reason(desk: Desk) -> None:
    nameless = desk("schedules", "put", "ticking.json")
    assert nameless.returncode == 2
    assert "--name" in nameless.stderr
    never = json.dumps({**NIGHTLY, "when": {"cron": "0 0 31 2 *"}})
    refused = desk("schedules", "put", "-", stdin=never)
    assert refused.returncode == 2
    assert "never fires" in refused.stderr
