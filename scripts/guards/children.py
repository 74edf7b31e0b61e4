"""Refusals about children: each end counts once, for the attempt that waits for it."""

from __future__ import annotations

from scripts.guards.guard import Guard

TEST = "tests/engine/test_children.py"

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
]
