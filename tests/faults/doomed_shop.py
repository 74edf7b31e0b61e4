"""`python -m tests.faults.doomed_shop MODE FOLDER EXECUTIONS POINT`.

A shop that kills itself at one of its writes.

A point (`commit:before:3`) is a write of the embedded engine on SQLite; on the third way there the
process dies, before it or after it.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

from penstock.stores.blobs import DirectoryBlobs
from penstock.stores.sqlite.claims import Claims
from penstock.stores.sqlite.hot import SqliteHotStore, SqliteTaskQueue
from penstock.stores.sqlite.writer import Writer
from tests.acceptance import shop
from tests.faults.launched import armed, die_at_passing
from tests.faults.points import read_point

PATCHED: dict[str, tuple[type, str]] = {
    "transaction": (Writer, "_transaction"),
    "answer": (Writer, "_answer"),
    "effects": (SqliteHotStore, "_apply"),
    "claim": (Claims, "add"),
    "claims_over": (Claims, "remove"),
    "begin": (SqliteTaskQueue, "begin"),
    "report": (SqliteTaskQueue, "report"),
    "blob": (DirectoryBlobs, "put"),
}
"""Where a write, or the word that it has been made, goes through.

And `commit`, which is SQLite's own.
"""


def arm(text: str) -> None:
    point = read_point(text)
    die = die_at_passing(point.passing, f"dies {point.side} {point.write}\n")
    is_before = point.side == "before"
    if point.write == "commit":
        doomed = functools.partial(sqlite3.connect, factory=_connection(die, is_before=is_before))
        vars(sqlite3)["connect"] = doomed
        return
    owner, name = PATCHED[point.write]
    call = getattr(owner, name)
    make = armed if inspect.iscoroutinefunction(call) else _armed_now
    setattr(owner, name, make(call, die, is_before=is_before))


def _armed_now(
    call: Callable[..., Any], die: Callable[[], None], *, is_before: bool
) -> Callable[..., Any]:
    @functools.wraps(call)
    def made(*arguments: Any, **named: Any) -> Any:
        if is_before:
            die()
        answer = call(*arguments, **named)
        if not is_before:
            die()
        return answer

    return made


def _connection(die: Callable[[], None], *, is_before: bool) -> type[sqlite3.Connection]:
    class Doomed(sqlite3.Connection):
        """A single statement is a transaction, too.

        An insert that stands alone is its own commit.
        """

        def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
            commits = statement == "COMMIT" or (
                statement.startswith("INSERT INTO changes") and not self.in_transaction
            )
            if commits and is_before:
                die()
            cursor = super().execute(statement, *parameters)
            if commits and not is_before:
                die()
            return cursor

    return Doomed


if __name__ == "__main__":
    arm(sys.argv[4])
    asyncio.run(shop.main())
