"""A commit plan says what a store writes, and nothing that contradicts itself."""

from __future__ import annotations

import pytest

from penstock.contract.facts import ended, queued, started, stop, task
from penstock.engine.commands import Commands
from penstock.engine.states import ExecutionState
from penstock.stores.base import Lease
from penstock.stores.commit_plan import CommitPlan, plan_commit

ID = "execution-1"


def plan_of(*decided: Commands) -> CommitPlan:
    return plan_commit(Lease(0, "owner-1", "token-1", 7, 3), 5, decided)


def test_a_plan_is_for_the_lease_and_the_commit_that_it_was_made_from() -> None:
    plan = plan_of()
    assert (plan.partition, plan.token, plan.commit_number, plan.position) == (0, "token-1", 7, 5)


def test_a_task_that_its_own_commit_stops_is_not_queued() -> None:
    goes_on, stopped = task(ID, "a"), task(ID, "b")
    commands = queued(goes_on, stopped)
    commands.stops.append(stop(stopped))
    plan = plan_of(commands)
    assert plan.tasks == [goes_on]
    assert plan.stops == [stop(stopped)]


def test_an_execution_that_has_ended_is_neither_woken_nor_paused_by_its_last_commit() -> None:
    last = ended(ID, timer_changed=True, wake_at=9.0, paused=True)
    plan = plan_of(last, started("execution-2", timer_changed=True, wake_at=9.0))
    assert [end.execution_id for end in plan.ended] == [ID]
    assert plan.timers_set == [("execution-2", 9.0)]
    assert plan.paused == []
    assert [entry.execution_id for entry in plan.outbox] == [ID]


def test_an_end_without_a_record_is_refused() -> None:
    with pytest.raises(ValueError, match="execution-1 ended without a record"):
        plan_of(ended(ID, record=None))


def test_a_plan_that_is_made_again_is_the_same_though_the_execution_has_gone_on() -> None:
    commands = started(ID)
    record = commands.record
    assert record is not None
    first = plan_of(commands)
    record.state = ExecutionState.COMPLETED
    record.finished_at = 2000.0
    assert plan_of(commands) == first


def test_what_becomes_of_an_execution_later_is_not_in_the_plan() -> None:
    last = ended(ID)
    plan = plan_of(last)
    changes, outbox = list(plan.changes), str(plan.outbox)
    assert last.record is not None
    last.record.state = ExecutionState.FAILED
    last.record.finished_at = 2000.0
    assert (plan.changes, str(plan.outbox)) == (changes, outbox)
    assert (plan.ended[0].state, plan.ended[0].finished_at) == (ExecutionState.COMPLETED, 1009.0)
