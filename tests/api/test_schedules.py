"""Schedules over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.caller import Caller, assert_problem
from tests.api_server import running_service
from tests.waiting import until_now

REPORT = {
    "name": "report",
    "nodes": [{"id": "a", "handler": "echo", "config": {"day": "{{ input.day ?? null }}"}}],
}
NIGHTLY = {
    "workflow": "report@latest",
    "when": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    "input": {"day": "{{ slot.local_date }}"},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("schedules")) as service:
        caller = Caller(service.address)
        caller.store(REPORT)
        yield caller


def put(api: Caller, name: str, **fields: Any) -> dict[str, Any]:
    answer = api.put(f"/schedules/{name}", {**NIGHTLY, **fields})
    assert answer.status in (200, 201), answer
    shown: dict[str, Any] = answer.body
    return shown


def test_a_schedule_is_stored_shown_changed_listed_and_deleted(api: Caller) -> None:
    created = put(api, "nightly", labels={"team": "ops"})
    assert created["created"]
    shown = api.shown("/schedules/nightly")
    assert shown == created["schedule"]
    assert (shown["workflow"], shown["overlap"], shown["paused"]) == (
        "report@latest",
        "skip",
        False,
    )
    assert shown["when"] == [{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}]
    assert shown["next"]["slot"].endswith("T02:30:00[Europe/Berlin]")

    changed = put(api, "nightly", overlap="allow", when=[{"every_seconds": 3600}])
    assert not changed["created"]
    assert changed["schedule"]["overlap"] == "allow"
    put(api, "another")
    assert [item["name"] for item in api.items("/schedules")] == ["another", "nightly"]
    (first,) = api.get("/schedules", limit=1).body["items"]
    assert first["name"] == "another"

    assert api.delete("/schedules/nightly").status == 204
    assert_problem(api.delete("/schedules/nightly"), 404)
    assert_problem(api.get("/schedules/nightly"), 404)
    api.delete("/schedules/another")


def test_what_is_shown_can_be_stored_again(api: Caller) -> None:
    shown = put(api, "again", **{"from": "2026-01-01T00:00:00Z"})["schedule"]
    fields = ("workflow", "when", "input", "overlap", "catchup", "from", "until", "labels")
    again = put(api, "again", **{name: shown[name] for name in fields})["schedule"]
    assert {**again, "updated_at": ""} == {**shown, "updated_at": ""}


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"when": {"cron": "0 0 31 2 *"}}, "never_fires", "when.cron"),
        ({"when": {"cron": "0 24 * * *"}}, "bad_cron", "when.cron"),
        ({"when": {"every_seconds": 0.5}}, "too_frequent", "when.every_seconds"),
        (
            {"when": {"cron": "* * * * *", "timezone": "Mars/Base"}},
            "unknown_timezone",
            "when.timezone",
        ),
    ],
)
def test_what_is_wrong_with_a_schedule_is_said_with_its_place(
    api: Caller, fields: dict[str, Any], code: str, path: str
) -> None:
    answer = api.put("/schedules/wrong", {**NIGHTLY, **fields})
    problem = assert_problem(answer, 422)
    assert [(one["code"], one["path"]) for one in problem["problems"]] == [(code, path)]


def test_a_schedule_of_no_workflow_or_with_unknown_fields_is_refused(api: Caller) -> None:
    assert_problem(api.put("/schedules/wrong", {**NIGHTLY, "workflow": "nosuch"}), 404)
    assert_problem(api.put("/schedules/wrong", {**NIGHTLY, "cron": "* * * * *"}), 422)
    assert_problem(api.put("/schedules/wrong", {"workflow": "report"}), 422)


def test_a_schedule_is_paused_and_resumed(api: Caller) -> None:
    put(api, "paused")
    paused = api.post("/schedules/paused/pause", {"reason": "holidays"})
    assert (paused.status, paused.body["paused_reason"]) == (200, "holidays")
    assert_problem(api.post("/schedules/paused/pause"), 409)
    assert not api.post("/schedules/paused/resume").body["paused"]
    assert_problem(api.post("/schedules/paused/resume"), 409)


def test_a_trigger_starts_an_execution_now(api: Caller) -> None:
    put(api, "now")
    started = api.post("/schedules/now/trigger")
    assert started.status == 201
    ended = api.until_state(started.body["execution_id"], "COMPLETED")
    assert ended["labels"] == {"schedule": "now"}
    assert len(ended["output"]["a"]["day"]) == len("2026-01-01")
    assert api.items("/schedules/now/slots") == []


def test_slots_start_in_time_and_are_listed_page_by_page(api: Caller) -> None:
    put(api, "ticking", when={"every_seconds": 1}, overlap="allow")
    until_now(lambda: len(api.items("/schedules/ticking/slots")) >= 3)
    api.post("/schedules/ticking/pause")
    everything = api.items("/schedules/ticking/slots")
    assert {item["outcome"] for item in everything} <= {"started", "late", "skipped"}
    moments = [item["at"] for item in everything]
    assert moments == sorted(moments, reverse=True)
    assert len(set(moments)) == len(moments)
    first = api.get("/schedules/ticking/slots", limit=2).body
    rest = api.get("/schedules/ticking/slots", limit=500, cursor=first["next_cursor"]).body
    assert first["items"] + rest["items"] == everything
    started = api.items("/schedules/ticking/slots", outcome="started")
    assert started
    for item in started:
        assert item["slot"] == item["at"][:19] + "[UTC]"
        api.until_state(item["execution_id"], "COMPLETED")
    assert_problem(api.get("/schedules/ticking/slots", outcome="nosuch"), 422)
    api.delete("/schedules/ticking")


def test_the_next_slots_say_what_changes_of_the_clock_do_to_them(api: Caller) -> None:
    put(api, "winter", **{"from": "2035-10-27T00:00:00Z"})
    (before, twice, after) = api.get("/schedules/winter/next", count=3).body["items"]
    assert before["note"] is None
    assert before["local"] == "2035-10-27T02:30:00+02:00"
    assert twice["note"] == "02:30 comes twice on this day: this is the first time"
    assert (after["at"], after["note"]) == (
        "2035-10-29T01:30:00.000Z",
        "clocks have been put back since the slot before",
    )
    put(api, "summer", **{"from": "2035-03-25T00:00:00Z"})
    (gone,) = api.get("/schedules/summer/next", count=1).body["items"]
    assert gone["note"] == "02:30 doesn't exist on this day: it starts at 03:00"
    assert_problem(api.get("/schedules/winter/next", count=101), 422)


def test_changes_are_in_the_audit_log(api: Caller) -> None:
    put(api, "audited")
    api.post("/schedules/audited/pause")
    api.delete("/schedules/audited")

    def actions() -> list[str]:
        lines = api.items("/audit", object="schedules/audited")
        return [line["action"] for line in lines]

    until_now(lambda: actions() == ["delete_schedule", "pause_schedule", "put_schedule"])
