"""Searching executions: every filter, alone and with others, page by page."""

import random
from itertools import islice
from typing import Any

from msgspec import structs

from penstock.contract.facts import (
    Owner,
    begin,
    ended,
    new_execution_ids,
    new_intent,
    over,
    running,
    started,
    submitted,
)
from penstock.engine.commands import Commands, Transition
from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState
from penstock.stores.base import Intent, Stores
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
    execution_ids = list(islice(new_execution_ids(stores), 5))
    await stores.cold.executions.record_intents(
        [new_intent(execution_id) for execution_id in execution_ids]
    )
    owner = await Owner.of(stores)
    await owner.commit(
        started(execution_ids[1]),
        started(execution_ids[2]),
        started(execution_ids[3]),
        started(execution_ids[4]),
    )
    await owner.commit(
        ended(execution_ids[2]),
        ended(execution_ids[3], ExecutionState.FAILED),
        ended(execution_ids[4]),
    )
    assert await _search(stores) == execution_ids[::-1]
    assert await _search(stores, limit=2) == execution_ids[:2:-1]

    expected = {
        "PENDING": [execution_ids[0]],
        "RUNNING": [execution_ids[1]],
        "COMPLETED": [execution_ids[4], execution_ids[2]],
        "FAILED": [execution_ids[3]],
        "CANCELLED": [],
        "PAUSED": [],
        "NONSENSE": [],
    }
    for state, wanted in expected.items():
        rows = await stores.cold.executions.search(Search(states=(state,)))
        assert [row.execution_id for row in rows] == wanted, state
        assert {row.state for row in rows} <= {state}

    matches = await _search(stores, states=("FAILED", "PENDING", "FAILED"))
    assert matches == [execution_ids[3], execution_ids[0]]


async def test_a_row_has_what_is_known_of_the_execution(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    fields: dict[str, Any] = {
        "workflow": "w",
        "version": 3,
        "created_at": 900.5,
        "labels": {"team": "é", "n": [1]},
    }
    intents = [submitted(next(execution_ids), **fields) for _ in range(4)]
    intents[3].retry_of = "before"
    await stores.cold.executions.record_intents(intents)
    owner = await Owner.of(stores)
    await owner.commit(*(running(intent) for intent in intents[1:]))
    error = TaskError("http", "boom", detail={"status": 500})
    failed = over(intents[3], ExecutionState.FAILED, error=error, error_node_id="fetch")
    await owner.commit(running(intents[2], ExecutionState.PAUSED), failed)
    rows = (await stores.cold.executions.search(Search()))[::-1]
    numbers = [row.n for row in rows]
    assert numbers == sorted(set(numbers))

    expected = [
        _expected_row(intents[0], "PENDING"),
        _expected_row(intents[1], "RUNNING", started_at=1001.0),
        _expected_row(intents[2], "PAUSED", started_at=1001.0),
        _expected_row(
            intents[3],
            "FAILED",
            started_at=1001.0,
            finished_at=1009.0,
            error=error,
            error_node_id="fetch",
        ),
    ]
    for row in rows:
        row.n = 0

    assert rows == expected


async def test_a_paused_execution_that_goes_on_is_running_again(stores: Stores) -> None:
    intent = submitted(next(new_execution_ids(stores)))
    await stores.cold.executions.record_intents([intent])
    owner = await Owner.of(stores)
    await owner.commit(running(intent, ExecutionState.PAUSED))
    assert await _search(stores, states=("PAUSED",)) == [intent.record.execution_id]

    resumed = running(intent)
    resumed.paused = False
    resumed.history = [Transition(3, 1002.0, "", "PAUSED", "RUNNING", 0)]
    await owner.commit(resumed)
    assert await _search(stores, states=("PAUSED",)) == []

    matches = await _search(stores, states=("RUNNING",), workflow="report")
    assert matches == [intent.record.execution_id]


async def test_labels_of_any_text_are_found_and_only_those(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    ids_by_text = {text: next(execution_ids) for text in ODD}
    intents = [
        submitted(execution_id, labels={text: text[::-1]})
        for text, execution_id in ids_by_text.items()
    ]
    await stores.cold.executions.record_intents(intents)
    for text, execution_id in ids_by_text.items():
        assert await _search(stores, labels={text: text[::-1]}) == [execution_id], text
    assert await _search(stores, labels={"a": "b"}) == []
    assert await _search(stores, labels={"half \ud800": "x"}) == []


async def test_a_label_that_is_not_text_is_compared_as_json(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    values = {
        "1": 1,
        "1.5": 1.5,
        "true": True,
        "null": None,
        '["é",1]': ["é", 1],
        '{"b":1,"a":2}': {"b": 1, "a": 2},
    }
    intents = {
        text: submitted(next(execution_ids), labels={"x": value}) for text, value in values.items()
    }
    await stores.cold.executions.record_intents(list(intents.values()))
    for text, intent in intents.items():
        assert await _search(stores, labels={"x": text}) == [intent.record.execution_id], text

    last = next(execution_ids)
    await stores.cold.executions.record_intents([submitted(last, labels={"x": "1"})])
    assert await _search(stores, labels={"x": "1"}) == [last, intents["1"].record.execution_id]


async def test_all_labels_that_are_given_must_hold(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    both = next(execution_ids)
    team_only = next(execution_ids)
    labels = {"team": "a", "env": "prod"}
    with_both = submitted(both, labels=labels)
    with_team = submitted(team_only, labels={"team": "a"})
    await stores.cold.executions.record_intents([with_both, with_team])
    assert await _search(stores, labels={"team": "a"}) == [team_only, both]
    assert await _search(stores, labels=labels) == [both]
    assert await _search(stores, labels={**labels, "env": "test"}) == []


async def test_text_is_part_of_the_id_or_of_the_workflows_name_and_taken_literally(
    stores: Stores,
) -> None:
    execution_ids = ["alpha-%-1", "alpha-_-2", "ALPHA-3", "beta\\4", "é-5", "plain-6"]
    intents = [submitted(execution_id, workflow="flow") for execution_id in execution_ids[:-1]]
    intents.append(submitted("plain-6", workflow="w_100%"))
    await stores.cold.executions.record_intents(intents)

    expected = {
        "": execution_ids[::-1],
        "alpha": execution_ids[2::-1],
        "Alpha-3": [execution_ids[2]],
        "%": ["plain-6", "alpha-%-1"],
        "_": ["plain-6", "alpha-_-2"],
        "-%-": ["alpha-%-1"],
        "\\": ["beta\\4"],
        "é": ["é-5"],
        "É": [],
        "FLOW": execution_ids[4::-1],
        "100%": ["plain-6"],
        "*": [],
        "'": [],
        "a\x00": [],
        "x" * 100_000: [],
        "half \ud800": [],
    }
    for text, wanted in expected.items():
        assert await _search(stores, text=text) == wanted, text[:20]


async def test_time_is_from_and_before(stores: Stores) -> None:
    execution_ids = list(islice(new_execution_ids(stores), 5))
    intents = [
        submitted(execution_id, created_at=float(created_at))
        for created_at, execution_id in enumerate(execution_ids, start=100)
    ]
    await stores.cold.executions.record_intents(intents)
    assert await _search(stores, since=103.0) == [execution_ids[4], execution_ids[3]]
    assert await _search(stores, until=102.0) == [execution_ids[1], execution_ids[0]]
    assert await _search(stores, since=101.0, until=102.0) == [execution_ids[1]]
    assert await _search(stores, since=103.0, until=103.0) == []
    assert await _search(stores, since=-1e300, until=1e300) == execution_ids[::-1]


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
    execution_ids = list(islice(new_execution_ids(stores), len(times)))
    for execution_id, at in zip(execution_ids, times, strict=True):
        await stores.cold.executions.record_intents([submitted(execution_id, created_at=at)])
    edges = sorted({0.0, 1000.000005, *times, 2e9})
    for since in edges:
        for until in edges:
            wanted = [
                execution_id
                for execution_id, at in zip(execution_ids, times, strict=True)
                if since <= at < until
            ]
            assert await _search(stores, since=since, until=until) == wanted[::-1], (since, until)


async def test_thousands_of_starts_at_the_same_time_are_found_by_it(stores: Stores) -> None:
    execution_ids = list(islice(new_execution_ids(stores), 3000))
    await stores.cold.executions.record_intents(
        [submitted(execution_id, created_at=500.0) for execution_id in execution_ids]
    )
    assert len(await _search(stores, since=500.0, until=500.001, limit=5000)) == 3000
    assert await _search(stores, since=500.001) == []


async def test_retries_are_found_by_what_they_retry(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    first = next(execution_ids)
    retries = [new_intent(next(execution_ids), retry_of=first) for _ in range(2)]
    await stores.cold.executions.record_intents([new_intent(first), *retries])
    newest_first = [intent.record.execution_id for intent in retries[::-1]]
    assert await _search(stores, retry_of=first) == newest_first
    for odd in ("unknown", *ODD, "half \ud800"):
        assert await _search(stores, retry_of=odd) == []


async def test_pages_have_no_gap_and_no_repeat_while_executions_come_and_end(
    stores: Stores,
) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    intents = [submitted(next(execution_ids), labels={"a": "b"}) for _ in range(25)]
    await cold.executions.record_intents(intents)
    owner = await Owner.of(stores)
    await owner.commit(*(running(intent) for intent in intents))
    ending = iter(list(intents))
    filters: list[dict[str, Any]] = [
        {},
        {"workflow": "report"},
        {"labels": {"a": "b"}},
        {"text": "execution"},
    ]
    for wanted in filters:
        expected = [intent.record.execution_id for intent in reversed(intents)]
        seen: list[str] = []
        before = None
        while page := await cold.executions.search(Search(before=before, limit=4, **wanted)):
            seen += [row.execution_id for row in page]
            before = page[-1].n
            intents.append(submitted(next(execution_ids), labels={"a": "b"}, created_at=2000.0))
            await cold.executions.record_intents(intents[-1:])
            await owner.commit(running(intents[-1]))
            await owner.commit(*(over(intent) for intent in islice(ending, 1)))
        assert seen == expected, wanted


async def test_numbers_that_are_out_of_reach_find_what_they_mean(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    await begin(stores, execution_id)
    assert await _search(stores, before=2**70) == [execution_id]
    assert await _search(stores, before=0) == []
    assert await _search(stores, version=2**70) == []
    assert await _search(stores, workflow="half \ud800") == []


async def test_any_search_finds_what_a_look_at_each_execution_finds(stores: Stores) -> None:
    choose = random.Random(7)
    rows = await _random_executions(stores, choose)
    hits = 0
    for _ in range(300):
        wanted = _any_search(choose)
        expected = [row["id"] for row in reversed(rows) if _fits(row, wanted)]
        matches = await _search(stores, limit=20, **wanted)
        assert matches == expected[:20], wanted
        hits += bool(matches)
    assert hits > 50


async def _random_executions(stores: Stores, choose: random.Random) -> list[dict[str, Any]]:
    """Executions of all kinds, and what a search should know about each."""
    execution_ids = new_execution_ids(stores)
    rows: list[dict[str, Any]] = []
    first_commit: list[Commands] = []
    last_commit: list[Commands] = []
    for number in range(120):
        state = choose.choice(["WAITS", *ExecutionState])
        label_keys = choose.sample("xyz", choose.randrange(3))
        labels = {key: choose.choice("ab") for key in label_keys}
        fields = {
            "workflow": choose.choice(["one", "two"]),
            "version": choose.randrange(1, 3),
            "labels": labels,
        }
        intent = submitted(next(execution_ids), created_at=1000.0 + number // 3, **fields)
        intent.waits = state == "WAITS"
        intent.retry_of = choose.choice([None, None, "r1", "r2"])
        visible_state = "PENDING" if intent.waits else str(state)
        row = {
            "id": intent.record.execution_id,
            "at": intent.record.created_at,
            "state": visible_state,
            "retry_of": intent.retry_of,
            **fields,
        }
        rows.append(row)
        await stores.cold.executions.record_intents([intent])
        if visible_state != "PENDING":
            first_commit.append(running(intent))
        if visible_state == "PAUSED":
            last_commit.append(running(intent, ExecutionState.PAUSED))
        elif visible_state not in ("PENDING", "RUNNING"):
            last_commit.append(over(intent, ExecutionState(visible_state)))

    owner = await Owner.of(stores)
    await owner.commit(*first_commit)
    await owner.commit(*last_commit)
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
    fields = choose.sample(list(options), choose.randrange(4))
    return {field: options[field] for field in fields}


def _fits(row: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether an execution matches, by the words of `Search`."""
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
    return all(judges[field](value) for field, value in wanted.items())


def _expected_row(intent: Intent, state: str, **fields: Any) -> ExecutionRow:
    record = intent.record
    row = ExecutionRow(
        0, record.execution_id, record.workflow, record.version, state, record.created_at
    )
    return structs.replace(row, labels=record.labels, retry_of=intent.retry_of, **fields)


async def _search(stores: Stores, **wanted: Any) -> list[str]:
    return [row.execution_id for row in await stores.cold.executions.search(Search(**wanted))]
