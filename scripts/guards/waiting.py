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

APPROVALS = "tests/api/test_approvals.py"
LINKS = "tests/api/test_approval_links.py"

GUARDS = [
    Guard(
        "a correlation keeps a signal from others",
        "engine/waiting.py",
        at="fits",
        pattern="awaited.correlation != signal.correlation",
        without="False",
        test="tests/engine/test_signals.py",
    ),
    Guard(
        "an approval waits for as many decisions as it needs",
        "engine/waiting.py",
        at="_decide",
        pattern="_ < approval.needed",
        without="False",
        test="tests/engine/test_approvals.py",
    ),
    Guard(
        "an approval is decided once",
        "service/approvals.py",
        at="_judge",
        pattern="if is_last: ...",
        without="pass",
        test=APPROVALS,
    ),
    Guard(
        "the same person decides once",
        "service/approvals.py",
        at="_judge",
        pattern="is_same_key or ...",
        without="False",
        test=APPROVALS,
    ),
    Guard(
        "an approval that is over is decided no more",
        "service/approvals.py",
        at="_open_approval",
        pattern="run.state is not NodeState.WAITING",
        without="False",
        test=f"{APPROVALS} {LINKS}",
    ),
    Guard(
        "an approval asks for a scope",
        "service/approvals.py",
        at="refusal_of",
        pattern="not includes(...)",
        without="False",
        test=APPROVALS,
    ),
    Guard(
        "an approval may name the keys that decide",
        "service/approvals.py",
        at="refusal_of",
        pattern="approval.keys and ...",
        without="False",
        test=APPROVALS,
    ),
    Guard(
        "whoever started an execution may be kept from deciding",
        "service/approvals.py",
        at="refusal_of",
        pattern="approval.not_starter and ...",
        without="False",
        test=APPROVALS,
    ),
    Guard(
        "a link ends with its key",
        "service/approval_links.py",
        at="read",
        pattern="key.revoked_at is not None",
        without="False",
        test=LINKS,
    ),
    Guard(
        "a post that has expired is for nobody (memory)",
        "stores/memory/posts.py",
        at="MemoryPosts.meet",
        pattern="post.expires_at >= wait.since",
        without="True",
        test="tests/contract/test_posts.py -k memory",
    ),
    Guard(
        "a post is given to one node (memory)",
        "stores/memory/posts.py",
        at="MemoryPosts.meet",
        pattern="if not post.to_all: ...",
        without="pass",
        test="tests/contract/test_posts.py -k memory",
    ),
    Guard(
        "a post is given to one node (SQLite)",
        "stores/sqlite/posts.py",
        at="meet",
        pattern="if not post.to_all: ...",
        without="pass",
        test="tests/contract/test_posts.py -k sqlite",
    ),
    Guard(
        "a post looks at a wait that is being written (PostgreSQL)",
        "stores/postgres/posts.py",
        at="PostgresPosts.put",
        pattern="lock(...)",
        without="lock(connection, str(id(post)))",
        test='tests/contract/test_posts.py -k "redis and not cluster"',
    ),
    Guard(
        "a signal that is received twice counts once",
        "engine/mailbox.py",
        at="Mailbox.receive",
        pattern="if signal.number in self.signals: ...",
        without="",
        test="tests/engine/test_signals.py",
    ),
    Guard(
        "a signal that a node has taken is for no other",
        "engine/waiting.py",
        at="take",
        pattern="execution.mailbox.take(_)",
        without="pass",
        test="tests/engine/test_signals.py",
    ),
    Guard(
        "a signal that a node has taken is for no other, for the next owner too",
        "engine/mailbox.py",
        at="Mailbox.restore",
        pattern="number not in taken",
        without="True",
        test="tests/engine/test_signals.py",
    ),
    Guard(
        "a signal goes to a node that still waits",
        "engine/on_signal.py",
        at="_waiting_run",
        pattern="run.state is NodeState.WAITING",
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
