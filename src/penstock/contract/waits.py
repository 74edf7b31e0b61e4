"""Open waits: the list of nodes that wait for somebody, which follows from the commits."""

from itertools import islice

from penstock.contract.facts import Owner, begin, ended, new_execution_ids
from penstock.engine.commands import Commands, More, NodeRun, Transition
from penstock.engine.states import NodeState
from penstock.stores.base import Stores
from penstock.stores.waits import WaitSearch


def waiting(execution_id: str, node: str, kind: str = "signal", key: str | None = None) -> Commands:
    """A commit in which a node begins to wait."""
    more = More(config=b'{"name":"paid"}', kind=kind, key=key)
    run = NodeRun(node, NodeState.WAITING, 1, started_at=1002.0, due_at=1060.0, more=more)
    line = Transition(2, 1002.0, node, "PENDING", "WAITING", 1)
    return Commands(execution_id, nodes={node: run}, history=[line])


def over(execution_id: str, node: str, kind: str = "signal") -> Commands:
    """A commit in which it has got what it waits for."""
    more = More(config=b"{}", kind=kind)
    run = NodeRun(node, NodeState.COMPLETED, 1, started_at=1002.0, more=more)
    line = Transition(3, 1003.0, node, "WAITING", "COMPLETED", 1)
    return Commands(execution_id, nodes={node: run}, history=[line])


async def _found(stores: Stores, **search: object) -> list[tuple[str, str]]:
    rows = await stores.cold.waits.find(WaitSearch(**search))  # type: ignore[arg-type]
    return [(row.wait.execution_id, row.wait.node_id) for row in rows]


async def _two(stores: Stores) -> tuple[Owner, str, str]:
    first, second = islice(new_execution_ids(stores), 2)
    return await begin(stores, first, second), first, second


async def test_a_wait_is_listed_from_its_beginning_to_its_end(stores: Stores) -> None:
    owner, first, second = await _two(stores)
    await owner.commit(waiting(first, "paid", key="order-7"))
    await owner.commit(waiting(second, "release", "approval"))
    ((row_id, workflow, version, wait), _) = await stores.cold.waits.find(WaitSearch())
    assert (row_id > 0, workflow, version) == (True, "report", 1)
    assert (wait.kind, wait.attempt, wait.config) == ("signal", 1, b'{"name":"paid"}')
    assert (wait.since, wait.due_at, wait.correlation) == (1002.0, 1060.0, "order-7")

    await owner.commit(over(first, "paid"))
    assert await _found(stores) == [(second, "release")]


async def test_waits_are_found_by_kind_and_correlation_and_page_by_page(stores: Stores) -> None:
    owner, first, second = await _two(stores)
    await owner.commit(waiting(first, "a", key="x"), waiting(second, "b", "approval"))
    await owner.commit(waiting(second, "c", key="y"))
    assert await _found(stores, kind="approval") == [(second, "b")]
    assert await _found(stores, correlation="y") == [(second, "c")]
    assert await _found(stores, correlation="nobody") == []
    page = await stores.cold.waits.find(WaitSearch(limit=2))
    rest = await stores.cold.waits.find(WaitSearch(after=page[-1].id))
    nodes = [row.wait.node_id for row in (*page, *rest)]
    assert (len(page), sorted(nodes)) == (2, ["a", "b", "c"])


async def test_a_wait_that_begins_and_ends_in_one_commit_is_not_listed(stores: Stores) -> None:
    owner, first, _ = await _two(stores)
    await owner.commit(over(first, "paid"))
    assert await _found(stores) == []


async def test_an_execution_that_ends_waits_for_nobody(stores: Stores) -> None:
    owner, first, _ = await _two(stores)
    await owner.commit(waiting(first, "paid"))
    end = ended(first)
    end.nodes = over(first, "paid").nodes
    await owner.commit(end)
    assert await _found(stores) == []
