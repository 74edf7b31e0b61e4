"""Executions named by the beginning of their id or by `@last`, and times such as `1h`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from penstock.cli.app import cli
from penstock.cli.execution_ids import Ambiguous, resolve
from penstock.cli.moments import moment
from penstock.errors import NotFound
from penstock.service.submissions import new_execution_id
from tests.cli.commands import nodes, write
from tests.cli.serving import Desk, dev

NAP = nodes({"id": "nap", "handler": "sleep", "config": {"seconds": 3600}})
FIRST = "0199a1b2-6c3d-7e4f-8a5b-9c0d1e2f3a4b"
SECOND = "0199a1b2-6c3d-7e4f-8a5b-9c0d1e2f3a4c"
THIRD = "0199a1b2-7000-7e4f-8a5b-9c0d1e2f3a4c"


class Shelf:
    """Executions that are searched as a server searches them, the newest first."""

    def __init__(self, *execution_ids: str, workflow: str = "report") -> None:
        self._items: list[dict[str, Any]] = [
            {
                "execution_id": execution_id,
                "workflow": workflow,
                "version": 3,
                "state": "COMPLETED",
                "labels": {},
                "created_at": created_at(execution_id).isoformat(),
            }
            for execution_id in sorted(execution_ids, reverse=True)
        ]

    async def executions(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        for item in self._items[:limit]:
            at = datetime.fromisoformat(item["created_at"])
            is_in_time = (since is None or at >= since) and (until is None or at < until)
            has_text = text is None or text in item["execution_id"] or text in item["workflow"]
            if is_in_time and has_text:
                yield item


def created_at(execution_id: str) -> datetime:
    milliseconds = int(execution_id.replace("-", "")[:12], 16)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def resolved(shelf: Shelf, text: str) -> str:
    return asyncio.run(resolve(shelf, text))


@pytest.mark.parametrize("text", [FIRST, FIRST[:-1] + "b", "0199a1b2-6c3d-7e4f-8a5b-9c0d1e2f3a4B"])
def test_a_whole_id_is_taken_as_it_is(text: str):
    assert resolved(Shelf(), text) == text


@pytest.mark.parametrize("text", ["0199a1b2-7", "0199A1B2-7000", THIRD[:-1]])
def test_the_beginning_of_an_id_names_the_execution(text: str):
    assert resolved(Shelf(FIRST, SECOND, THIRD), text) == THIRD


def test_an_id_that_was_just_made_is_found_by_every_beginning_of_it():
    execution_id = new_execution_id()
    for length in range(4, 36):
        assert resolved(Shelf(execution_id), execution_id[:length]) == execution_id


def test_several_candidates_are_listed():
    with pytest.raises(Ambiguous) as raised:
        resolved(Shelf(FIRST, SECOND, THIRD), "0199a1b2-6c")
    lines = str(raised.value).splitlines()
    assert lines[0] == "several executions have ids that begin with '0199a1b2-6c':"
    assert [line.split()[0] for line in lines[1:]] == [SECOND, FIRST]
    assert lines[1].split()[1:3] == ["report@3", "COMPLETED"]


def test_of_many_candidates_only_the_newest_are_listed():
    many = [f"0199a1b2-6c3d-7e4f-8a5b-9c0d1e2f3a{number:02x}" for number in range(9)]
    with pytest.raises(Ambiguous) as raised:
        resolved(Shelf(*many), "0199a1b2")
    lines = str(raised.value).splitlines()
    assert (len(lines), lines[-1].strip()) == (7, "and more")


def test_a_workflow_with_such_a_name_is_no_candidate():
    with pytest.raises(NotFound, match="no execution whose id begins with '9c0d'"):
        resolved(Shelf(FIRST, workflow="9c0d"), "9c0d")


def test_too_short_a_beginning_is_refused():
    with pytest.raises(NotFound, match="at least 4 characters"):
        resolved(Shelf(FIRST), "019")


def test_last_is_the_newest():
    assert resolved(Shelf(FIRST, THIRD, SECOND), "@last") == THIRD
    with pytest.raises(NotFound, match="no executions yet"):
        resolved(Shelf(), "@last")


NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h", NOW - timedelta(hours=1)),
        ("2d", NOW - timedelta(days=2)),
        (" 90 S ", NOW - timedelta(seconds=90)),
        ("0.5w", NOW - timedelta(days=3.5)),
        ("2026-11-18T13:30:00+02:00", datetime(2026, 11, 18, 11, 30, tzinfo=UTC)),
        ("2026-11-18T11:30:00Z", datetime(2026, 11, 18, 11, 30, tzinfo=UTC)),
        ("2026-11-18", datetime(2026, 11, 18, tzinfo=UTC)),
    ],
)
def test_a_time_is_an_age_or_a_date(text: str, expected: datetime):
    assert moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "1y", "h", "-1h", "2026-13-01", "999999w"])
def test_what_is_no_time_is_refused(text: str):
    with pytest.raises((ValueError, OverflowError)):
        moment(text, NOW)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("desk")
    ok = {**nodes({"id": "hello", "handler": "echo", "config": {"n": 7}}), "name": "ok"}
    write(folder, {"ok.json": json.dumps(ok), "nap.json": json.dumps(NAP)})
    with dev(folder) as url:
        yield Desk(folder, url)


def test_every_command_takes_a_shortened_id_and_last(desk: Desk):
    execution_id = desk.out("submit", "nap.json")
    beginning = execution_id[:24]
    for verb in ("pause", "resume", "cancel"):
        assert desk.out(verb, beginning) == f"{verb} requested: {execution_id}"
    assert desk("watch", "@last").returncode == 1
    assert desk.json("show", beginning)["state"] == "CANCELLED"
    assert desk("results", "@last").returncode == 1
    retried = desk.json("retry", "@last", "--preview")
    assert retried["retry_of"] == execution_id
    assert desk.json("dlq", "list", "--execution", "@last") == {"items": []}


def calls_with_last(group: click.Group) -> Iterator[list[str]]:
    """A call of each command that takes an execution's id, with @last as that id."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        arguments = [part for part in command.params if isinstance(part, click.Argument)]
        if isinstance(command, click.Group):
            yield from ([name, *call] for call in calls_with_last(command))
        elif arguments and str(arguments[0].name).startswith("execution_id"):
            yield [name, "@last", *("x" for part in arguments[1:] if part.required)]


def test_no_command_takes_an_id_only_whole(tmp_path: Path):
    calls = list(calls_with_last(cli))
    assert len(calls) >= 12
    with dev(tmp_path) as url:
        empty = Desk(tmp_path, url)
        for call in calls:
            assert "so @last names none" in empty(*call).stderr, call


def test_an_ambiguous_id_changes_nothing(desk: Desk):
    ids = [desk.out("submit", "nap.json") for _ in range(2)]
    # of a shorter one, other tests may have more executions than the message lists
    shared = next(i for i, pair in enumerate(zip(*ids, strict=True)) if len({*pair}) > 1)
    prefix = ids[0][:shared]
    done = desk("cancel", "@last", prefix)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"penstock cancel: several executions have ids that begin with '{prefix}':\n"
    )
    assert all(execution_id in done.stderr for execution_id in ids)
    assert {desk.json("show", execution_id)["state"] for execution_id in ids} <= {
        "PENDING",
        "RUNNING",
    }
    desk.out("cancel", *ids)


def test_lists_take_ages(desk: Desk):
    execution_id = desk.out("submit", "ok.json", "--label", "age=new")
    label = ("--label", "age=new")
    assert desk.json("list", *label, "--since", "1h")["items"][0]["execution_id"] == execution_id
    assert desk.json("list", *label, "--until", "1h")["items"] == []
    assert desk.json("errors", "--since", "1h", "--until", "2099-01-01") == {"items": []}
    refused = desk("list", "--since", "yesterday")
    assert refused.returncode == 2
    assert (
        "Invalid value for '--since': 'yesterday' is neither an age such as 45m, 1h or 2d"
        in refused.stderr
    )
