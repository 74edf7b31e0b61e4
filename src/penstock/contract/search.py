"""Searching executions: every filter, alone and with others, page by page."""

import random
from itertools import islice
from typing import Any

from msgspec import structs

from penstock.contract.facts import (
    Owner,
    begin,
    ended,
    execution_ids,
    new,
    over,
    running,
    started,
    submitted,
)
from penstock.engine.commands import Transition
from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState
from penstock.stores.base import NewExecution, Stores
from penstock.stores.records import ExecutionRow, Search

ODD = [
    "",
    " ",
    "é",
    "🦀",
    "a:b",
    "a=b",
    "%",
    "_",
    "\\",
    "'; DROP TABLE labels; --",
    '"',
    "a\x00b",
    "x" * 5000,
    "$.a",
]


async def test_executions_are_listed_newest_first_and_by_state(stores: Stores) -> None:
    names = [name for name, _ in zip(execution_ids(stores), range(5), strict=False)]
    await stores.cold.create([new(name) for name in names])
    owner = await Owner.of(stores)
    await owner.commit(started(names[1]), started(names[2]), started(names[3]), started(names[4]))
    await owner.commit(ended(names[2]), ended(names[3], ExecutionState.FAILED), ended(names[4]))
    assert await _found(stores) == names[::-1]
    assert await _found(stores, limit=2) == names[:2:-1]
    expected = {
        "PENDING": [names[0]], "RUNNING": [names[1]], "COMPLETED": [names[4], names[2]], "FAILED": [names[3]],
        "CANCELLED": [], "PAUSED": [], "NONSENSE": [],
    }  # fmt: skip
    for state, wanted in expected.items():
        found = await stores.cold.search(Search(states=(state,)))
        assert [row.execution_id for row in found] == wanted, state
        assert {row.state for row in found} <= {state}
    assert await _found(stores, states=("FAILED", "PENDING", "FAILED")) == [names[3], names[0]]


async def test_a_row_has_what_is_known_of_the_execution(stores: Stores) -> None:
    names = execution_ids(stores)
    fields: dict[str, Any] = {
        "workflow": "w",
        "version": 3,
        "created_at": 900.5,
        "labels": {"team": "é", "n": [1]},
    }
    made = [submitted(next(names), **fields) for _ in range(4)]
    made[3].retry_of = "before"
    await stores.cold.create(made)
    owner = await Owner.of(stores)
    await owner.commit(*(running(each) for each in made[1:]))
    error = TaskError("http", "boom", detail={"status": 500})
    failed = over(made[3], ExecutionState.FAILED, error=error, error_node="fetch")
    await owner.commit(running(made[2], ExecutionState.PAUSED), failed)
    found = (await stores.cold.search(Search()))[::-1]
    numbers = [row.n for row in found]
    assert numbers == sorted(set(numbers))
    expected = [
        _row(made[0], "PENDING"),
        _row(made[1], "RUNNING", started_at=1001.0),
        _row(made[2], "PAUSED", started_at=1001.0),
        _row(
            made[3],
            "FAILED",
            started_at=1001.0,
            finished_at=1009.0,
            error=error,
            error_node="fetch",
        ),
    ]
    for row in found:
        row.n = 0
    assert found == expected


async def test_a_paused_execution_that_goes_on_is_running_again(stores: Stores) -> None:
    given = submitted(next(execution_ids(stores)))
    await stores.cold.create([given])
    owner = await Owner.of(stores)
    await owner.commit(running(given, ExecutionState.PAUSED))
    assert await _found(stores, states=("PAUSED",)) == [given.record.execution_id]
    resumed = running(given)
    resumed.paused, resumed.history = False, [Transition(3, 1002.0, "", "PAUSED", "RUNNING", 0)]
    await owner.commit(resumed)
    assert await _found(stores, states=("PAUSED",)) == []
    assert await _found(stores, states=("RUNNING",), workflow="report") == [
        given.record.execution_id
    ]


async def test_labels_of_any_text_are_found_and_only_those(stores: Stores) -> None:
    names = execution_ids(stores)
    made = {text: next(names) for text in ODD}
    await stores.cold.create(
        [submitted(name, labels={text: text[::-1]}) for text, name in made.items()]
    )
    for text, name in made.items():
        assert await _found(stores, labels={text: text[::-1]}) == [name], text
    assert await _found(stores, labels={"a": "b"}) == []
    assert await _found(stores, labels={"half \ud800": "x"}) == []


async def test_a_label_that_is_not_text_is_compared_as_json(stores: Stores) -> None:
    names = execution_ids(stores)
    values = {
        "1": 1,
        "1.5": 1.5,
        "true": True,
        "null": None,
        '["é",1]': ["é", 1],
        '{"b":1,"a":2}': {"b": 1, "a": 2},
    }
    made = {text: submitted(next(names), labels={"x": value}) for text, value in values.items()}
    await stores.cold.create(list(made.values()))
    for text, given in made.items():
        assert await _found(stores, labels={"x": text}) == [given.record.execution_id], text
    await stores.cold.create([submitted(last := next(names), labels={"x": "1"})])
    assert await _found(stores, labels={"x": "1"}) == [last, made["1"].record.execution_id]


async def test_all_labels_that_are_given_must_hold(stores: Stores) -> None:
    names = execution_ids(stores)
    both, one = next(names), next(names)
    labels = {"team": "a", "env": "prod"}
    await stores.cold.create([submitted(both, labels=labels), submitted(one, labels={"team": "a"})])
    assert await _found(stores, labels={"team": "a"}) == [one, both]
    assert await _found(stores, labels=labels) == [both]
    assert await _found(stores, labels={**labels, "env": "test"}) == []


async def test_text_is_part_of_the_id_or_of_the_workflows_name_and_taken_literally(
    stores: Stores,
) -> None:
    names = ["alpha-%-1", "alpha-_-2", "ALPHA-3", "beta\\4", "é-5", "plain-6"]
    made = [submitted(name, workflow="w_100%" if name == "plain-6" else "flow") for name in names]
    await stores.cold.create(made)
    expected = {
        "": names[::-1],
        "alpha": names[2::-1],
        "Alpha-3": [names[2]],
        "%": ["plain-6", "alpha-%-1"],
        "_": ["plain-6", "alpha-_-2"],
        "-%-": ["alpha-%-1"],
        "\\": ["beta\\4"],
        "é": ["é-5"],
        "É": [],
        "FLOW": names[4::-1],
        "100%": ["plain-6"],
        "*": [],
        "'": [],
        "a\x00": [],
        "x" * 100_000: [],
        "half \ud800": [],
    }
    for text, wanted in expected.items():
        assert await _found(stores, text=text) == wanted, text[:20]


async def test_time_is_from_and_before(stores: Stores) -> None:
    names = [name for name, _ in zip(execution_ids(stores), range(5), strict=False)]
    await stores.cold.create(
        [submitted(name, created_at=100.0 + i) for i, name in enumerate(names)]
    )
    assert await _found(stores, since=103.0) == [names[4], names[3]]
    assert await _found(stores, until=102.0) == [names[1], names[0]]
    assert await _found(stores, since=101.0, until=102.0) == [names[1]]
    assert await _found(stores, since=103.0, until=103.0) == []
    assert await _found(stores, since=-1e300, until=1e300) == names[::-1]


async def test_time_is_found_whatever_the_clock_did_between_starts(stores: Stores) -> None:
    times = [
        5000.0,
        9000.0,
        1000.0,
        1000.0,
        8.0,
        1000.00001,
        1_700_000_000.123456,
        1_600_000_000.0,
        5000.0,
    ]
    names = [name for name, _ in zip(execution_ids(stores), times, strict=False)]
    for name, at in zip(names, times, strict=True):
        await stores.cold.create([submitted(name, created_at=at)])
    edges = sorted({0.0, 1000.000005, *times, 2e9})
    for since in edges:
        for until in edges:
            wanted = [name for name, at in zip(names, times, strict=True) if since <= at < until]
            assert await _found(stores, since=since, until=until) == wanted[::-1], (since, until)


async def test_thousands_of_starts_at_the_same_time_are_found_by_it(stores: Stores) -> None:
    names = [name for name, _ in zip(execution_ids(stores), range(3000), strict=False)]
    await stores.cold.create([submitted(name, created_at=500.0) for name in names])
    assert len(await _found(stores, since=500.0, until=500.001, limit=5000)) == 3000
    assert await _found(stores, since=500.001) == []


async def test_retries_are_found_by_what_they_retry(stores: Stores) -> None:
    names = execution_ids(stores)
    first = next(names)
    retries = [new(next(names), retry_of=first) for _ in range(2)]
    await stores.cold.create([new(first), *retries])
    assert await _found(stores, retry_of=first) == [
        each.record.execution_id for each in retries[::-1]
    ]
    for odd in ("unknown", *ODD, "half \ud800"):
        assert await _found(stores, retry_of=odd) == []


async def test_pages_have_no_gap_and_no_repeat_while_executions_come_and_end(
    stores: Stores,
) -> None:
    names = execution_ids(stores)
    made = [submitted(next(names), labels={"a": "b"}) for _ in range(25)]
    await stores.cold.create(made)
    owner = await Owner.of(stores)
    await owner.commit(*(running(each) for each in made))
    ending = iter(list(made))
    filters: list[dict[str, Any]] = [
        {},
        {"workflow": "report"},
        {"labels": {"a": "b"}},
        {"text": "execution"},
    ]
    for wanted in filters:
        expected = [each.record.execution_id for each in reversed(made)]
        seen: list[str] = []
        before = None
        while page := await stores.cold.search(Search(before=before, limit=4, **wanted)):
            seen += [row.execution_id for row in page]
            before = page[-1].n
            made.append(submitted(next(names), labels={"a": "b"}, created_at=2000.0))
            await stores.cold.create(made[-1:])
            await owner.commit(running(made[-1]))
            await owner.commit(*(over(each) for each in islice(ending, 1)))
        assert seen == expected, wanted


async def test_numbers_that_are_out_of_reach_find_what_they_mean(stores: Stores) -> None:
    await begin(stores, name := next(execution_ids(stores)))
    assert await _found(stores, before=2**70) == [name]
    assert await _found(stores, before=0) == []
    assert await _found(stores, version=2**70) == []
    assert await _found(stores, workflow="half \ud800") == []


async def test_any_search_finds_what_a_look_at_each_execution_finds(stores: Stores) -> None:
    choose = random.Random(7)
    rows = await _many(stores, choose)
    hits = 0
    for _ in range(300):
        wanted = _any_search(choose)
        expected = [row["id"] for row in reversed(rows) if _fits(row, wanted)]
        found = await _found(stores, limit=20, **wanted)
        assert found == expected[:20], wanted
        hits += bool(found)
    assert hits > 50


async def _many(stores: Stores, choose: random.Random) -> list[dict[str, Any]]:
    """Executions of all kinds, and what is to be known of each."""
    names, rows, first, last = execution_ids(stores), [], [], []
    for number in range(120):
        state = choose.choice(["WAITS", *ExecutionState])
        labels = {key: choose.choice("ab") for key in choose.sample("xyz", choose.randrange(3))}
        fields = {
            "workflow": choose.choice(["one", "two"]),
            "version": choose.randrange(1, 3),
            "labels": labels,
        }
        given = submitted(next(names), created_at=1000.0 + number // 3, **fields)
        given.waits = state == "WAITS"
        given.retry_of = choose.choice([None, None, "r1", "r2"])
        shown = "PENDING" if given.waits else str(state)
        rows.append(
            {
                "id": given.record.execution_id,
                "at": given.record.created_at,
                "state": shown,
                **fields,
            }
        )
        rows[-1]["retry_of"] = given.retry_of
        await stores.cold.create([given])
        if shown != "PENDING":
            first.append(running(given))
        if shown == "PAUSED":
            last.append(running(given, ExecutionState.PAUSED))
        elif shown not in ("PENDING", "RUNNING"):
            last.append(over(given, ExecutionState(shown)))
    owner = await Owner.of(stores)
    await owner.commit(*first)
    await owner.commit(*last)
    return rows


def _any_search(choose: random.Random) -> dict[str, Any]:
    options = {
        "states": tuple(choose.sample(list(ExecutionState), choose.randrange(1, 4))),
        "workflow": choose.choice(["one", "two", "three"]),
        "version": choose.randrange(1, 4),
        "labels": {
            key: choose.choice("ab") for key in choose.sample("xyz", choose.randrange(1, 3))
        },
        "since": 1000.0 + choose.randrange(40),
        "until": 1000.0 + choose.randrange(60),
        "text": choose.choice(["1", "TWO", "n-3", "no"]),
        "retry_of": choose.choice(["r1", "r2", "r3"]),
    }
    return {name: options[name] for name in choose.sample(list(options), choose.randrange(4))}


def _fits(row: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Word for word what `Search` says."""
    judges: dict[str, Any] = {
        "states": lambda states: row["state"] in states,
        "workflow": lambda name: row["workflow"] == name,
        "version": lambda number: row["version"] == number,
        "labels": lambda labels: labels.items() <= row["labels"].items(),
        "since": lambda at: row["at"] >= at,
        "until": lambda at: row["at"] < at,
        "text": lambda text: text.lower() in row["id"] or text.lower() in row["workflow"],
        "retry_of": lambda origin: row["retry_of"] == origin,
    }
    return all(judges[name](value) for name, value in wanted.items())


def _row(given: NewExecution, state: str, **fields: Any) -> ExecutionRow:
    record = given.record
    made = ExecutionRow(
        0, record.execution_id, record.workflow, record.version, state, record.created_at
    )
    return structs.replace(made, labels=record.labels, retry_of=given.retry_of, **fields)


async def _found(stores: Stores, **wanted: Any) -> list[str]:
    return [row.execution_id for row in await stores.cold.search(Search(**wanted))]
