"""Refusals of waits and signals: none is taken twice, and none comes after the end."""

from __future__ import annotations

from scripts.guards.guard import Guard

STORES = {
    "memory": ("stores/memory/signals.py", "MemorySignals.put", "memory"),
    "SQLite": ("stores/sqlite/signals.py", "_put", "sqlite"),
    "PostgreSQL": ("stores/postgres/signals.py", "PostgresSignals.put", "redis and not cluster"),
}
CHECKS = {
    "check_receiving(...)": "a signal for an execution that has ended is refused",
    "check_same(...)": "a key that comes back with another signal is refused",
    "check_room(...)": "an execution keeps only so many signals",
}

GUARDS = [
    Guard(
        "a signal that is received twice counts once",
        "engine/on_signal.py",
        at="signal_received",
        pattern="if _ in execution.signals: ...",
        without="",
        test="tests/engine/test_signals.py",
    ),
    Guard(
        "a signal that a node has taken is for no other",
        "engine/waiting.py",
        at="free_signals",
        pattern="_ not in taken",
        without="True",
        test="tests/engine/test_signals.py",
    ),
    Guard(
        "the end of a wait is for nodes that wait",
        "engine/waiting.py",
        at="wait_is_over",
        pattern="run.state is not NodeState.WAITING",
        without="False",
        test="tests/engine/test_signals.py",
    ),
    Guard(
        "nothing is sent to an execution that has ended",
        "stores/signals.py",
        at="check_receiving",
        pattern="state in EXECUTION_ENDS",
        without="False",
        test="tests/contract/test_signals.py -k memory",
    ),
    Guard(
        "nothing is sent to an execution that waits to be triggered",
        "stores/signals.py",
        at="check_receiving",
        pattern="if waits: ...",
        without="",
        test="tests/contract/test_signals.py -k memory",
    ),
    Guard(
        "a key that comes back is compared",
        "stores/signals.py",
        at="check_same",
        pattern="_ != (signal.name, signal.payload)",
        without="False",
        test="tests/contract/test_signals.py -k memory",
    ),
    Guard(
        "a wait that is over is taken off the list",
        "stores/waits.py",
        at="changes_of",
        pattern="run.state in NODE_ENDS",
        without="False",
        test="tests/contract/test_waits.py -k memory",
    ),
    *(
        Guard(
            f"{text} ({store})",
            file,
            at=at,
            pattern=check,
            without="",
            test=f'tests/contract/test_signals.py -k "{selection}"',
        )
        for store, (file, at, selection) in STORES.items()
        for check, text in CHECKS.items()
    ),
]
