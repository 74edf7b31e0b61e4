"""A cold store on a database of its own, and copies to put into it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import NullPool, create_engine

from penstock.contract.facts import record
from penstock.engine.commands import DeadLetter, ExecutionRecord, Transition
from penstock.engine.events import Value
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.stores import codec
from penstock.stores.base import Intent
from penstock.stores.postgres import migrating
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.database import DatabaseTiming
from penstock.stores.tiering import Copy, summary_of
from tests.servers import bare_database_url, database_url


def with_store(test: Callable[[PostgresColdStore], Awaitable[None]]) -> Callable[[], None]:
    """Makes a test of a coroutine function that takes an opened store with one partition."""

    def run() -> None:
        asyncio.run(with_opened(database_url(1), test))

    run.__name__ = str(getattr(test, "__name__", ""))
    run.__doc__ = test.__doc__
    run.__module__ = test.__module__
    return run


async def with_opened(
    url: str,
    test: Callable[[PostgresColdStore], Awaitable[Any]],
    timing: DatabaseTiming | None = None,
) -> Any:
    store = PostgresColdStore(url, timing=timing)
    try:
        await store.open()
        return await test(store)
    finally:
        await store.close()


def database_of_schema(version: str, partitions: int) -> str:
    """The address of a database as an earlier version made it."""
    url = bare_database_url()
    upgrade(url, version, partitions)
    return url


def upgrade(url: str, version: str, partitions: int = 1) -> None:
    """Bring a database to this schema, as the version of Penstock does that ends with it."""
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool
    )
    config = Config()
    config.set_main_option("script_location", str(Path(migrating.__file__).with_name("migrations")))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
        migrating._fill(connection, partitions, url)
    engine.dispose()


def new_intent(name: str, **fields: Any) -> Intent:
    new_record = record(name)
    new_record.created_at = fields.pop("created_at", new_record.created_at)
    new_record.labels = fields.pop("labels", {})
    return Intent(new_record, **fields)


def copy_of(
    name: str,
    state: ExecutionState,
    revision: int,
    *,
    generation: int = 1,
    changes: bool = True,
    dead_letters: Sequence[DeadLetter] = (),
    outputs: Mapping[str, Value] | None = None,
    finished_at: float = 1009.0,
    first: int = 0,
) -> Copy:
    """What the owner sends: one change with a history line for each revision, from `first` on."""
    new_record = record(name, state, generation=generation, started_at=1001.0)
    if state in EXECUTION_ENDS:
        new_record.finished_at = finished_at
    parts: list[bytes] = []
    if changes:
        seqs = range(first + 1, revision + 1)
        parts = [change_of(new_record, seq, dict(outputs or {})) for seq in seqs]
    return Copy(name, summary_of(new_record, revision), parts, list(dead_letters), first=first)


def change_of(execution_record: ExecutionRecord, seq: int, outputs: dict[str, Value]) -> bytes:
    line = Transition(seq, 1000.0 + seq, "", "PENDING", str(execution_record.state), 0)
    return codec.encode(codec.Change(codec.SCHEMA, execution_record, [], outputs, [line]))


async def shown(store: PostgresColdStore, name: str) -> tuple[str, int, int]:
    """State, generation and number of history lines of an execution."""
    stored = await store.executions.execution(name)
    assert stored is not None
    return str(stored.record.state), stored.record.generation, len(stored.history)
