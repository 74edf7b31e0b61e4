"""Dead letters: they are found by what failed, and closed once."""

import asyncio
from typing import Any

from msgspec import structs

from penstock.contract.facts import begin, dead_letter, ended, new_execution_ids, running, submitted
from penstock.engine.commands import DeadLetter
from penstock.engine.states import ExecutionState
from penstock.stores.base import Stores
from penstock.stores.records import DeadLetterSearch


async def test_dead_letters_are_listed_newest_first_in_pages(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    for nodes in ("ab", "c", "de"):
        dead_letters = [dead_letter(execution_id, node) for node in nodes]
        await owner.commit(ended(execution_id, dead_letters=dead_letters, finished=False))

    rows = await stores.cold.dead_letters.dead_letters(DeadLetterSearch())
    newest_first = [dead_letter(execution_id, node_id) for node_id in "edcba"]
    assert [row.dead_letter for row in rows] == newest_first
    for row in rows:
        assert (row.workflow, row.version) == ("report", 1)
        assert (row.closed, row.closed_at, row.retried_as) == (None, None, None)

    pages: list[str] = []
    before = None
    while page := await stores.cold.dead_letters.dead_letters(
        DeadLetterSearch(before=before, limit=2)
    ):
        pages += [row.dead_letter.node_id for row in page]
        before = page[-1].id

    assert "".join(pages) == "edcba"


async def test_dead_letters_are_found_by_each_filter(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    id_a = next(execution_ids)
    id_b = next(execution_ids)
    a = submitted(id_a, workflow="one")
    b = submitted(id_b, workflow="two", version=7)
    await cold.executions.record_intents([a, b])
    dead_letters = [
        dead_letter(id_a, "p", "http", "timeout"),
        dead_letter(id_a, "q", "llm", "handler"),
        dead_letter(id_b, "r", "http", "handler"),
        DeadLetter(id_b, "s", "http", 1.0, []),
    ]
    first = running(a)
    first.dead_letters = dead_letters[:2]
    second = running(b)
    second.dead_letters = dead_letters[2:]
    owner = await begin(stores, next(execution_ids))
    await owner.commit(first, second)

    expected: dict[str, dict[str, Any]] = {
        "srqp": {},
        "qp": {"workflow": "one"},
        "sr": {"execution_id": id_b},
        "srp": {"handler": "http"},
        "rq": {"category": "handler"},
        "s": {"category": ""},
        "r": {"handler": "http", "category": "handler"},
        "q": {
            "workflow": "one",
            "handler": "llm",
            "category": "handler",
            "execution_id": id_a,
        },
    }
    for nodes, wanted in expected.items():
        rows = await cold.dead_letters.dead_letters(DeadLetterSearch(**wanted))
        assert "".join(row.dead_letter.node_id for row in rows) == nodes, wanted

    for field in ("workflow", "handler", "category", "execution_id"):
        for odd in ("%", "unknown", "half \ud800"):
            search = structs.replace(DeadLetterSearch(), **{field: odd})
            assert await cold.dead_letters.dead_letters(search) == []

    (newest,) = await cold.dead_letters.dead_letters(DeadLetterSearch(limit=1))
    assert (newest.workflow, newest.version) == ("two", 7)


async def test_a_dead_letter_is_found_by_its_number(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    dead_letters = [dead_letter(execution_id, node_id) for node_id in "ab"]
    await owner.commit(ended(execution_id, ExecutionState.FAILED, dead_letters=dead_letters))
    for row in await cold.dead_letters.dead_letters(DeadLetterSearch()):
        assert await cold.dead_letters.dead_letter(row.id) == row
    for number in (0, -1, 3, 2**70):
        assert await cold.dead_letters.dead_letter(number) is None


async def test_a_closed_dead_letter_is_listed_on_request_only_and_says_what_became_of_it(
    stores: Stores,
) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    dead_letters = [dead_letter(execution_id, node_id) for node_id in "abc"]
    await owner.commit(ended(execution_id, ExecutionState.FAILED, dead_letters=dead_letters))
    c, b, a = [row.id for row in await cold.dead_letters.dead_letters(DeadLetterSearch())]
    numbers = [a, b, b, 99, 2**70]
    assert await cold.dead_letters.close_dead_letters(numbers, "retried", 5.0, "the-retry") == 2
    assert await cold.dead_letters.close_dead_letters([b, c], "dropped", 6.0) == 1
    assert await cold.dead_letters.close_dead_letters([], "dropped", 7.0) == 0
    assert await cold.dead_letters.dead_letters(DeadLetterSearch()) == []

    closed = await cold.dead_letters.dead_letters(DeadLetterSearch(closed=True))
    fates = [(row.dead_letter.node_id, row.closed, row.closed_at, row.retried_as) for row in closed]
    assert fates == [
        ("c", "dropped", 6.0, None),
        ("b", "retried", 5.0, "the-retry"),
        ("a", "retried", 5.0, "the-retry"),
    ]


async def test_a_dead_letter_that_many_close_at_once_is_closed_by_one(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await owner.commit(
        ended(execution_id, ExecutionState.FAILED, dead_letters=[dead_letter(execution_id)])
    )
    (row,) = await cold.dead_letters.dead_letters(DeadLetterSearch())
    answers = await asyncio.gather(
        *(
            cold.dead_letters.close_dead_letters([row.id], "retried", 5.0, f"r{i}")
            for i in range(10)
        )
    )
    assert sorted(answers) == [0] * 9 + [1]

    closed = await cold.dead_letters.dead_letter(row.id)
    assert closed is not None
    assert closed.retried_as == f"r{answers.index(1)}"
