"""Every write of the stores' protocols, and who passes it: where a process can be killed.

The list is taken from the protocols: whatever isn't named as a read is a write, so a new one is a
new point, and the test fails until it is said here who passes it. A kill around a read is one after
the write before it.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from penstock.stores import cold
from penstock.stores.base import BlobStore, HotStore, TaskQueue
from penstock.stores.tiering import ColdTier, HotTier

PROTOCOLS: tuple[type, ...] = (
    HotStore,
    TaskQueue,
    BlobStore,
    HotTier,
    ColdTier,
    cold.Definitions,
    cold.Executions,
    cold.Signals,
    cold.Waits,
    cold.Posts,
    cold.DeadLetters,
    cold.Counting,
    cold.ApiKeys,
    cold.AuditLog,
)
READS: dict[type, Collection[str]] = {
    HotStore: ("receive", "load", "due", "next_due", "active", "known"),
    TaskQueue: ("claimed", "live_log", "workers", "depths", "offers", "backlog", "tasks_ahead"),
    BlobStore: ("get",),
    HotTier: ("server_id", "built", "outbox", "changes", "tails"),
    ColdTier: ("unfinished", "ended_children", "children_left_behind"),
    cold.Definitions: ("get_workflow", "workflows", "versions", "aliases", "known_handlers"),
    cold.Executions: (
        "key_use",
        "control_requests",
        "started",
        "execution",
        "intent",
        "intents",
        "search",
        "history",
        "read_commits",
        "commits_end",
    ),
    cold.DeadLetters: ("dead_letters", "dead_letter"),
    cold.Signals: ("of", "undelivered"),
    cold.Waits: ("find",),
    cold.Posts: (),
    cold.Counting: ("count_created", "count_active", "count_unfinished", "count_dead_letters"),
    cold.ApiKeys: ("keys",),
    cold.AuditLog: ("audit",),
}
REPLY = "Api.reply"
"""What the API tells its caller; the replies of the other roles are their commits and reports."""
UNDER_WORK = {
    "orchestrator": (
        "HotStore.acquire",
        "HotStore.renew",
        "HotStore.commit",
        "HotStore.announce",
        "HotTier.acknowledge_outbox",
        "HotTier.acknowledge_commit",
        "HotTier.acknowledge_copies",
        "ColdTier.put_copies",
        "ColdTier.put_waits",
        "ColdTier.claim",
        "ColdTier.renew_claim",
        "BlobStore.put",
    ),
    "worker": (
        "Definitions.remember_handlers",
        "TaskQueue.fetch",
        "TaskQueue.report",
        "TaskQueue.started",
        "TaskQueue.heartbeat",
        "TaskQueue.share_logs",
        "BlobStore.put",
    ),
    "api": (
        "Definitions.put_workflow",
        "Definitions.put_inline",
        "Definitions.set_alias",
        "Definitions.remove_alias",
        "Definitions.delete_workflow",
        "Executions.record_intents",
        "Executions.trigger",
        "Executions.request_control",
        "HotStore.append",
        "Signals.put",
        "Posts.put",
        "DeadLetters.close_dead_letters",
        "ApiKeys.put_key",
        "ApiKeys.revoke_key",
        "AuditLog.write_audit",
        REPLY,
    ),
}
"""By role, what it passes when there is work of all kinds."""
AT_THE_END = {
    "orchestrator": ("HotStore.release", "HotStore.deregister", "ColdTier.release_claim"),
    "worker": ("TaskQueue.leave",),
}
"""What it passes when it is told to stop."""
AFTER_A_LOSS = {"orchestrator": ("HotStore.append", "TaskQueue.reap")}
"""What an owner passes when a start or a worker was lost."""
IN_A_REBUILD = {
    "orchestrator": (
        "ColdTier.begin_rebuild",
        "HotTier.wipe",
        "HotTier.restore",
        "HotStore.append",
        "HotTier.mark_built",
    )
}
"""What an owner passes when Redis has lost everything."""
BY_NO_ROLE = (
    "BlobStore.delete",
    "ColdTier.put_version_back",
    "HotTier.forget_copies",
    "TaskQueue.give_back",
    "TaskQueue.recall",
    "AuditLog.forget_audit",
)
"""Writes that no role passes in these tests.

PostgreSQL's blobs go with the rows that name them, in `purge`; only the embedded engine deletes
files.

A version is put back and copies are forgotten only after PostgreSQL was put back to an older copy,
and tasks are given back or recalled only where their handler is gone, which these tests don't do.
The audit log is shortened once an hour.
"""


class Point(NamedTuple):
    role: str
    write: str
    side: str
    passing: int

    def __str__(self) -> str:
        return f"{self.write}:{self.side}:{self.passing}"


def read_point(text: str) -> Point:
    write, side, passing = text.split(":")
    return Point("", write, side, int(passing))


def writes() -> list[str]:
    """All of them, as `Protocol.method`."""
    return [
        f"{protocol.__name__}.{name}" for protocol in PROTOCOLS for name in _writes_of(protocol)
    ]


def _writes_of(protocol: type) -> Iterable[str]:
    members: Iterable[tuple[str, Any]] = vars(protocol).items()
    return [
        name
        for name, member in members
        if inspect.iscoroutinefunction(member) and name not in READS[protocol]
    ]


def points_of(*tables: Mapping[str, Sequence[str]], passing: int = 1) -> list[Point]:
    """Before and after each."""
    pairs = [
        (role, write) for table in tables for role, writes in table.items() for write in writes
    ]
    return [
        Point(role, write, side, passing) for role, write in pairs for side in ("before", "after")
    ]
