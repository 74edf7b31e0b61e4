"""The states of a node and of an execution, and the table of what may follow what.

Anything that isn't in the table raises `InvalidTransition`: a late result, a late timer or a bug
can't revive what has ended. Terminal states have no row to go to.

    PENDING --> QUEUED --> RUNNING --> COMPLETED | FAILED
       |          |  ^        |
       |          v  |        v
       |        RETRYING <----+          CANCELLED from anything that hasn't ended
       +--> SKIPPED, COMPLETED | FAILED (data nodes, reused nodes, conditions, configs), WAITING

A node that waits for its next attempt fails if it is an item whose time is up: RETRYING → FAILED.
A map or a loop is WAITING while its items or rounds run: then COMPLETED | FAILED | CANCELLED.
A node that runs another workflow is WAITING for its child, RETRYING before the next one.

How an execution ends, and what its `error` is then:

    COMPLETED   no node failed, or only optional ones    none
    FAILED      every node has ended, one has failed     the first failure, with its node
    FAILED      out of time, or broken                   the time-out or what broke, without a node
    CANCELLED   cancelled before one of the above        the first failure until then, if any
    COMPLETED   a `terminate` node said so               none
    FAILED      a `terminate` node said so               its message, with its node

A cancel wins over a failure that has not ended the execution yet (`continue`, or clean-up that
still runs): the execution did not get to its own end. The failure stays visible in `error` and on
its node.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.errors import InvalidTransition


class NodeState(StrEnum):
    PENDING = "PENDING"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"


class ExecutionState(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


_N = NodeState
_E = ExecutionState

NODE_TRANSITIONS: dict[NodeState, frozenset[NodeState]] = {
    _N.PENDING: frozenset(
        {_N.QUEUED, _N.WAITING, _N.COMPLETED, _N.FAILED, _N.SKIPPED, _N.CANCELLED}
    ),
    _N.QUEUED: frozenset({_N.RUNNING, _N.RETRYING, _N.FAILED, _N.CANCELLED}),
    _N.RUNNING: frozenset({_N.COMPLETED, _N.FAILED, _N.RETRYING, _N.CANCELLED}),
    _N.RETRYING: frozenset({_N.QUEUED, _N.WAITING, _N.FAILED, _N.CANCELLED}),
    _N.WAITING: frozenset({_N.RETRYING, _N.COMPLETED, _N.FAILED, _N.CANCELLED}),
    _N.COMPLETED: frozenset(),
    _N.FAILED: frozenset(),
    _N.SKIPPED: frozenset(),
    _N.CANCELLED: frozenset(),
}

EXECUTION_TRANSITIONS: dict[ExecutionState, frozenset[ExecutionState]] = {
    _E.PENDING: frozenset({_E.RUNNING, _E.FAILED, _E.CANCELLED}),
    _E.RUNNING: frozenset({_E.PAUSED, _E.COMPLETED, _E.FAILED, _E.CANCELLED}),
    _E.PAUSED: frozenset({_E.RUNNING, _E.COMPLETED, _E.FAILED, _E.CANCELLED}),
    _E.COMPLETED: frozenset(),
    _E.FAILED: frozenset(),
    _E.CANCELLED: frozenset(),
}

NODE_ENDS = frozenset({_N.COMPLETED, _N.FAILED, _N.SKIPPED, _N.CANCELLED})
EXECUTION_ENDS = frozenset({_E.COMPLETED, _E.FAILED, _E.CANCELLED})


def check_node(node_id: str, before: NodeState, after: NodeState) -> None:
    if after not in NODE_TRANSITIONS[before]:
        raise InvalidTransition(f"node {node_id!r} can't go from {before} to {after}")


def check_execution(execution_id: str, before: ExecutionState, after: ExecutionState) -> None:
    if after not in EXECUTION_TRANSITIONS[before]:
        raise InvalidTransition(f"execution {execution_id!r} can't go from {before} to {after}")
