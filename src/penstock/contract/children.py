"""What a commit sends to other executions: written with it, and followed by its events."""

from __future__ import annotations

from itertools import islice

from penstock.contract.facts import Owner, begin, ended, new_execution_ids, record, started
from penstock.engine.commands import Commands, ControlChild, Parent, Send, StartChild
from penstock.engine.events import (
    AnyEvent,
    CancelRequested,
    ChildEnded,
    ExecutionStarted,
    PauseRequested,
    ResumeRequested,
)
from penstock.errors import Fenced
from penstock.stores.base import Stores, partition_of


def child_of(parent: str, child: str) -> StartChild:
    about = Parent(parent, "bill", 1, parent, 1)
    return StartChild(record(child, labels={"team": "red"}, priority=3, parent=about))


def sending(execution_id: str, *sends: Send) -> Commands:
    """A commit of an execution that runs, with what it sends."""
    return started(execution_id, history=[], sends=list(sends))


async def _inbox(stores: Stores, execution_id: str) -> list[AnyEvent]:
    """What came for an execution, which stays there."""
    partition = partition_of(execution_id, stores.hot.partitions)
    received = await stores.hot.receive(partition, 0, 1000, 0.0)
    return [event for _, event in received if event.execution_id == execution_id]


async def _parent_and_child(stores: Stores) -> tuple[Owner, str, str]:
    parent, child = islice(new_execution_ids(stores), 2)
    return await begin(stores, parent), parent, child


async def test_a_child_is_recorded_and_its_start_is_in_its_inbox(stores: Stores) -> None:
    owner, parent, child = await _parent_and_child(stores)
    start = child_of(parent, child)
    await owner.commit(sending(parent, start))
    intent = await stores.cold.executions.intent(child)
    assert intent is not None
    assert intent.record == start.record
    assert not intent.waits
    assert await _inbox(stores, child) == [ExecutionStarted(child)]
    assert child in await stores.cold.executions.started(owner.lease.partition)

    await owner.commit(started(child, record=start.record))
    loaded = (await stores.hot.load([child]))[child]
    assert loaded.record.parent == start.record.parent


async def test_a_child_that_is_sent_again_is_the_one_that_is_there(stores: Stores) -> None:
    owner, parent, child = await _parent_and_child(stores)
    start = child_of(parent, child)
    await owner.commit(sending(parent, start))
    later = child_of(parent, child)
    later.record.created_at = 2000.0
    await owner.commit(sending(parent, later))
    intent = await stores.cold.executions.intent(child)
    assert intent is not None
    assert intent.record.created_at == start.record.created_at
    assert await _inbox(stores, child) == 2 * [ExecutionStarted(child)]


async def test_many_children_are_started_by_one_commit(stores: Stores) -> None:
    parent, *children = islice(new_execution_ids(stores), 41)
    owner = await begin(stores, parent)
    await owner.commit(sending(parent, *[child_of(parent, child) for child in children]))
    intents = await stores.cold.executions.intents(children)
    assert set(intents) == set(children)
    await owner.commit(*[started(child) for child in children])
    assert set(children) <= set(await stores.hot.active(owner.lease.partition))


async def test_control_requests_of_a_child_are_recorded_and_delivered(stores: Stores) -> None:
    owner, parent, child = await _parent_and_child(stores)
    await owner.commit(sending(parent, child_of(parent, child)))
    await owner.commit(started(child))
    partition = owner.lease.partition
    for request in ("pause", "resume", "cancel"):
        control = ControlChild(child, request, "parent_ended" if request == "cancel" else "")
        await owner.commit(sending(parent, control))
        requests = await stores.cold.executions.control_requests(partition)
        if request != "resume":  # what is fulfilled may be left out
            assert requests[child] == request
    assert await _inbox(stores, child) == [
        ExecutionStarted(child),
        PauseRequested(child),
        ResumeRequested(child),
        CancelRequested(child, "parent_ended"),
    ]


async def test_a_control_request_without_an_effect_is_dropped(stores: Stores) -> None:
    owner, parent, child = await _parent_and_child(stores)
    await owner.commit(sending(parent, ControlChild("nobody", "cancel")))
    await owner.commit(sending(parent, child_of(parent, child)))
    await owner.commit(started(child))
    await owner.commit(sending(parent, ControlChild(child, "resume")))
    await owner.commit(ended(child))
    await owner.commit(sending(parent, ControlChild(child, "cancel")))
    assert await _inbox(stores, child) == [ExecutionStarted(child)]
    assert await _inbox(stores, "nobody") == []


async def test_the_end_of_a_child_is_in_the_inbox_of_its_parent(stores: Stores) -> None:
    owner, parent, child = await _parent_and_child(stores)
    await owner.commit(sending(parent, child_of(parent, child)))
    await owner.commit(started(child))
    event = ChildEnded(parent, "bill", 1, child, "COMPLETED", b'{"paid":5}')
    await owner.commit(ended(child, sends=[event]))
    assert (await _inbox(stores, parent))[-1] == event


async def test_a_commit_that_is_refused_sends_nothing(stores: Stores) -> None:
    owner, parent, child = await _parent_and_child(stores)
    plan = owner.commit_of(sending(parent, child_of(parent, child)))
    plan.token = "another"
    try:
        await stores.hot.commit(plan)
    except Fenced:
        pass
    else:
        raise AssertionError("it was written")
    assert await stores.cold.executions.intent(child) is None
    assert await _inbox(stores, child) == []
