"""Where each part of the engine begins: what `Clock` is put around, from outside.

`python -m benchmarks.costs.parts FILE orchestrator …` is `penstock orchestrator …` whose parts are
timed; what they took since the last SIGUSR1 is written to the file when it ends.
"""

from __future__ import annotations

import atexit
import signal
import sys
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from benchmarks.costs.clock import Clock
from penstock.orchestrator.committer import Committer
from penstock.orchestrator.loader import Loader
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.tiering.archiver import Archiver
from penstock.orchestrator.tiering.checkpointer import Checkpointer
from penstock.service.submissions import Submissions
from penstock.stores.memory.task_queue import MemoryTaskQueue
from penstock.stores.redis.hot import RedisHotStore
from penstock.stores.redis.queue import RedisTaskQueue
from penstock.stores.sqlite.hot import SqliteHotStore
from penstock.stores.sqlite.writer import Writer
from penstock.worker.runtime import Worker

COMMON: list[tuple[Any, str, str]] = [
    (Submissions, "submit", "api"),
    (Submissions, "submit_many", "api"),
    (Submissions, "_record_batch", "api"),
    (Loader, "load", "load"),
    (PartitionOwner, "_decide", "decide"),
    (PartitionOwner, "_commit_batch", "commit"),
    (Committer, "wait_landed", "commit"),
    (Worker, "_slot", "run"),
    (Archiver, "_move", "archive"),
    (Archiver, "drain", "archive"),
    (Checkpointer, "copy", "archive"),
]


def entries() -> list[tuple[Any, str, str]]:
    """Class, method and part."""
    timed_calls = list(COMMON)
    timed_calls += [
        *_of_store(SqliteHotStore, MemoryTaskQueue),
        *_of_store(RedisHotStore, RedisTaskQueue),
    ]
    timed_calls += [(Writer, "_write", "commit"), (SqliteHotStore, "append_now", "inbox")]
    return [
        *timed_calls,
        (HttpToolsProtocol, "data_received", "api"),
        (RequestResponseCycle, "run_asgi", "api"),
    ]


def _of_store(hot: Any, queue: Any) -> list[tuple[Any, str, str]]:
    return [
        (hot, "receive", "inbox"),
        (hot, "append", "inbox"),
        (hot, "commit", "commit"),
        (queue, "fetch", "fetch"),
        (queue, "report", "report"),
    ]


def watched() -> Clock:
    """A clock around all parts of this process, from now on."""
    clock = Clock()
    for owner, name, part in entries():
        clock.wrap(owner, name, part)
    return clock


def main() -> None:
    file, *arguments = sys.argv[1:]
    clock = watched()
    atexit.register(clock.write, Path(file))
    signal.signal(signal.SIGUSR1, lambda *_: clock.forget())
    sys.argv = ["penstock", *arguments]
    from penstock.cli import main as penstock  # noqa: PLC0415 -- after the parts are watched

    sys.exit(penstock())


if __name__ == "__main__":
    main()
