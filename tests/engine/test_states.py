"""The table of transitions: what isn't in it raises, and nothing leaves a terminal state (G4)."""

from __future__ import annotations

from itertools import product

import pytest

from penstock.engine.states import (
    EXECUTION_ENDS,
    EXECUTION_TRANSITIONS,
    NODE_ENDS,
    NODE_TRANSITIONS,
    ExecutionState,
    NodeState,
    check_execution,
    check_node,
)
from penstock.errors import InvalidTransition

NODE_STATES = {
    "PENDING",
    "QUEUED",
    "RUNNING",
    "RETRYING",
    "WAITING",
    "COMPLETED",
    "FAILED",
    "SKIPPED",
    "CANCELLED",
}
EXECUTION_STATES = {"PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"}
# Written down here once more, and not read from the module: a transition that slips in there is
# refused here.
NODE_WAYS = {
    "PENDING": {"QUEUED", "WAITING", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED"},
    "QUEUED": {"RUNNING", "RETRYING", "FAILED", "CANCELLED"},
    "RUNNING": {"COMPLETED", "FAILED", "RETRYING", "CANCELLED"},
    "RETRYING": {"QUEUED", "WAITING", "FAILED", "CANCELLED"},
    "WAITING": {"RETRYING", "COMPLETED", "FAILED", "CANCELLED"},
}
EXECUTION_WAYS = {
    "PENDING": {"RUNNING", "FAILED", "CANCELLED"},
    "RUNNING": {"PAUSED", "COMPLETED", "FAILED", "CANCELLED"},
    "PAUSED": {"RUNNING", "COMPLETED", "FAILED", "CANCELLED"},
}
NODE_PAIRS = list(product(NodeState, NodeState))
EXECUTION_PAIRS = list(product(ExecutionState, ExecutionState))


def test_the_states_are_those_of_the_design():
    assert set(NodeState) == NODE_STATES == set(NODE_TRANSITIONS)
    assert set(ExecutionState) == EXECUTION_STATES == set(EXECUTION_TRANSITIONS)
    assert {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"} == NODE_ENDS
    assert {"COMPLETED", "FAILED", "CANCELLED"} == EXECUTION_ENDS


@pytest.mark.parametrize(("before", "after"), NODE_PAIRS)
def test_a_node_moves_by_the_table_or_not_at_all(before, after):
    if after in NODE_WAYS.get(before, ()):
        check_node("fetch", before, after)
    else:
        with pytest.raises(
            InvalidTransition, match=f"node 'fetch' can't go from {before} to {after}"
        ):
            check_node("fetch", before, after)


@pytest.mark.parametrize(("before", "after"), EXECUTION_PAIRS)
def test_an_execution_moves_by_the_table_or_not_at_all(before, after):
    if after in EXECUTION_WAYS.get(before, ()):
        check_execution("e-1", before, after)
    else:
        with pytest.raises(
            InvalidTransition, match=f"execution 'e-1' can't go from {before} to {after}"
        ):
            check_execution("e-1", before, after)


@pytest.mark.parametrize(("before", "after"), [pair for pair in NODE_PAIRS if pair[0] in NODE_ENDS])
def test_nothing_follows_a_node_that_has_ended(before, after):
    with pytest.raises(InvalidTransition):
        check_node("fetch", before, after)


@pytest.mark.parametrize(
    ("before", "after"), [pair for pair in EXECUTION_PAIRS if pair[0] in EXECUTION_ENDS]
)
def test_nothing_follows_an_execution_that_has_ended(before, after):
    with pytest.raises(InvalidTransition):
        check_execution("e-1", before, after)


@pytest.mark.parametrize("state", NodeState)
def test_nothing_returns_to_pending_or_stays_where_it_is(state):
    assert NodeState.PENDING not in NODE_TRANSITIONS[state]
    assert state not in NODE_TRANSITIONS[state]


@pytest.mark.parametrize("state", ExecutionState)
def test_no_execution_returns_to_pending_or_stays_where_it_is(state):
    assert ExecutionState.PENDING not in EXECUTION_TRANSITIONS[state]
    assert state not in EXECUTION_TRANSITIONS[state]


@pytest.mark.parametrize("state", [state for state in NodeState if state not in NODE_ENDS])
def test_whatever_has_not_ended_can_be_cancelled(state):
    assert NodeState.CANCELLED in NODE_TRANSITIONS[state]


@pytest.mark.parametrize(
    "state", [state for state in ExecutionState if state not in EXECUTION_ENDS]
)
def test_an_execution_that_has_not_ended_can_be_cancelled(state):
    assert ExecutionState.CANCELLED in EXECUTION_TRANSITIONS[state]


def test_only_a_dispatched_attempt_runs_and_only_one_under_way_is_retried():
    assert [
        before
        for before, after in NODE_PAIRS
        if after in NODE_TRANSITIONS[before] and after == "RUNNING"
    ] == [NodeState.QUEUED]
    retried = {
        before
        for before, after in NODE_PAIRS
        if after in NODE_TRANSITIONS[before] and after == "RETRYING"
    }
    assert retried == {NodeState.QUEUED, NodeState.RUNNING, NodeState.WAITING}


def test_only_a_pending_node_is_skipped():
    assert [before for before in NodeState if NodeState.SKIPPED in NODE_TRANSITIONS[before]] == [
        NodeState.PENDING
    ]
