"""Refusals about children: each end counts once, for the attempt that waits for it."""

from __future__ import annotations

from scripts.guards.guard import Guard

TEST = "tests/engine/test_children.py"
ROWS = "tests/postgres/test_children.py"

GUARDS = [
    Guard(
        "the end of another child changes nothing",
        "engine/on_child.py",
        at="awaiting_run",
        pattern="run.more.child != event.child",
        without="False",
        test=TEST,
    ),
    Guard(
        "the end of another attempt's child changes nothing",
        "engine/on_child.py",
        at="awaiting_run",
        pattern="run.attempt != event.attempt",
        without="False",
        test=TEST,
    ),
    Guard(
        "the end of a child that nobody waits for changes nothing",
        "engine/on_child.py",
        at="awaiting_run",
        pattern="run.state is not NodeState.WAITING",
        without="False",
        test=TEST,
    ),
    Guard(
        "children of children go only so deep",
        "engine/children.py",
        at="look_up",
        pattern="if depth > depth_max: ...",
        without="pass",
        test=TEST,
    ),
    Guard(
        "a control request that has no effect on a child is dropped",
        "stores/children.py",
        at="can_be_controlled",
        pattern="check_controllable(...)",
        without="pass",
        test="tests/contract/test_children.py",
    ),
    Guard(
        "a child gets no input that no database stores",
        "orchestrator/children.py",
        at="ChildFinder._find",
        pattern="check_values(...)",
        without="pass",
        test="tests/runtime/test_children.py",
    ),
    Guard(
        "nothing is told of a child that goes on",
        "orchestrator/children.py",
        at="ends_of",
        pattern="record.state not in EXECUTION_ENDS",
        without="False",
        test="tests/orchestrator/test_recovery.py",
    ),
    Guard(
        "a child that has ended isn't started again",
        "orchestrator/children.py",
        at="Relay._start",
        pattern="intent.record.state in EXECUTION_ENDS",
        without="False",
        test="tests/orchestrator/test_children.py",
    ),
    Guard(
        "a former owner starts no child",
        "orchestrator/tiering/archiver.py",
        at="Archiver._move",
        pattern="if downwards: ...",
        without="if downwards: await self._relay.deliver(downwards)",
        test="tests/orchestrator/test_children.py",
    ),
    Guard(
        "a child that goes on isn't listed as ended",
        "stores/postgres/copying.sql",
        at="update_rows",
        pattern="copy.phase = 'ended'",
        without="true",
        test=ROWS,
    ),
    Guard(
        "an end isn't told to a parent that has ended",
        "stores/postgres/children.sql",
        at="select_ended",
        pattern="parent.phase = 'started'",
        without="true",
        test=ROWS,
    ),
    Guard(
        "a child isn't cancelled while its parent goes on",
        "stores/postgres/children.sql",
        at="select_left",
        pattern="parent.phase = 'ended'",
        without="true",
        test=ROWS,
    ),
    Guard(
        "a child that has ended isn't cancelled",
        "stores/postgres/children.sql",
        at="select_left",
        pattern="child.phase = 'started'",
        without="true",
        test=ROWS,
    ),
]
