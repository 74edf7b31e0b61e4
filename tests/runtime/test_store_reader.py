"""A store's file is read by others while an engine works on it, and after that."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Engine, Registry
from penstock.config import Settings
from penstock.errors import NotFound, SchemaMismatch, SettingsError, StoreError
from penstock.runtime import StoreReader
from penstock.worker.context import Context
from penstock.worker.registry import Handler

FLOW = {
    "name": "flow",
    "nodes": [
        {"id": "say", "handler": "say"},
        {"id": "large", "handler": "echo", "config": {"text": "x" * 200_000}},
        {
            "id": "doomed",
            "handler": "fail",
            "depends_on": ["say", "large"],
            "config": {"message": "no luck"},
            "retry": {"max_attempts": 1},
        },
    ],
}
GATED = {
    "name": "gated",
    "nodes": [{"id": "a", "handler": "gated"}, {"id": "b", "handler": "noop"}],
}


def say(_config: dict[str, Any], ctx: Context) -> str:
    ctx.log.info("hello")
    return "hi"


class Gate:
    """A handler that waits until it is opened."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()

    async def __call__(self, _config: dict[str, Any]) -> str:
        await self.is_open.wait()
        return "through"


def settings() -> Settings:
    return Settings.load({"shutdown_grace_seconds": 1}, {})


@asynccontextmanager
async def working(file: Path, *handlers: Handler) -> AsyncIterator[Engine]:
    registry = Registry([Handler("say", say), *handlers])
    async with Engine(f"sqlite:///{file}", settings=settings(), registry=registry) as engine:
        yield engine


def reader_of(file: Path) -> StoreReader:
    return StoreReader(f"sqlite:///{file}", settings())


async def every(items: Any) -> list[Any]:
    return [item async for item in items]


READS: dict[str, Callable[[Any, str], Awaitable[Any]]] = {
    "executions": lambda caller, _: every(caller.executions()),
    "a text": lambda caller, execution_id: every(caller.executions(text=execution_id[:13])),
    "dead letters": lambda caller, _: every(caller.dead_letters()),
    "a dead letter": lambda caller, _: caller.dead_letter(1),
    "errors": lambda caller, _: every(caller.errors(text="luck")),
    "workflows": lambda caller, _: every(caller.workflows()),
    "results": lambda caller, execution_id: caller.execution(execution_id).results(),
    "history": lambda caller, execution_id: caller.execution(execution_id).history(),
    "events": lambda caller, execution_id: every(caller.execution(execution_id).events()),
    "a node": lambda caller, execution_id: caller.execution(execution_id).node("doomed"),
    "logs": lambda caller, execution_id: caller.execution(execution_id).logs("say"),
    "all logs": lambda caller, execution_id: every(caller.execution(execution_id).all_logs()),
    "graph": lambda caller, execution_id: caller.execution(execution_id).graph(),
}


def test_a_reader_answers_what_the_engine_answers(tmp_path: Path) -> None:
    file = tmp_path / "work.db"

    async def main() -> None:
        async with working(file) as engine:
            execution = await engine.start(FLOW)
            await execution.result(timeout=30)
            async with reader_of(file) as reader:
                for name, read in READS.items():
                    answer = await read(reader, execution.id)
                    assert answer, name
                    assert answer == await read(engine, execution.id), name
                status = await reader.execution(execution.id).status()
                nodes = status.view["nodes"]
                assert (status.state, nodes["say"]["output"]) == ("FAILED", "hi")
                assert nodes["large"]["output"] == {"text": "x" * 200_000}

    asyncio.run(main())


def test_a_reader_follows_an_execution_that_another_process_runs(tmp_path: Path) -> None:
    file = tmp_path / "work.db"

    async def main() -> None:
        gate = Gate()
        async with working(file, Handler("gated", gate)) as engine, reader_of(file) as reader:
            execution = await engine.start(GATED)
            states: list[str] = []
            async for event in reader.execution(execution.id).events():
                states.append(event["to"])
                if event["node_id"] == "b" and event["to"] == "COMPLETED":
                    gate.is_open.set()
            assert states[-1] == "COMPLETED"
            result = await reader.execution(execution.id).result(timeout=30)
            assert result.view["nodes"]["a"]["output"] == "through"

    asyncio.run(main())


CHANGES: dict[str, Callable[[StoreReader, str], Awaitable[Any]]] = {
    "cancel": lambda reader, execution_id: reader.execution(execution_id).cancel(),
    "pause": lambda reader, execution_id: reader.execution(execution_id).pause(),
    "resume": lambda reader, execution_id: reader.execution(execution_id).resume(),
    "retry": lambda reader, execution_id: reader.execution(execution_id).retry(),
    "put_workflow": lambda reader, _: reader.put_workflow({**FLOW, "description": "new"}),
    "delete_workflow": lambda reader, _: reader.delete_workflow("flow"),
    "drop_dead_letter": lambda reader, _: reader.drop_dead_letter(1),
    "set_alias": lambda reader, _: reader.set_alias("flow", "stable", 1),
}


@pytest.fixture
def ended(tmp_path: Path) -> tuple[Path, str]:
    """A store that nobody has open, and the id of an execution in it."""
    file = tmp_path / "work.db"

    async def main() -> str:
        async with working(file) as engine:
            await engine.put_workflow(FLOW, allow_unknown_handlers=True)
            execution = await engine.start("flow")
            await execution.result(timeout=30)
        return execution.id

    return file, asyncio.run(main())


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.iterdir()
        if path.is_file()
    }


def test_reading_changes_nothing_and_creates_no_file(ended: tuple[Path, str]) -> None:
    file, execution_id = ended
    before = contents(file.parent)

    async def main() -> None:
        async with reader_of(file) as reader:
            for read in READS.values():
                await read(reader, execution_id)
            assert contents(file.parent) == before

    asyncio.run(main())
    assert contents(file.parent) == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_reader_refuses_to_change_anything(ended: tuple[Path, str], change: str) -> None:
    file, execution_id = ended
    before = contents(file.parent)

    async def main() -> None:
        async with reader_of(file) as reader:
            with pytest.raises(StoreError, match="opened for reading only"):
                await CHANGES[change](reader, execution_id)

    asyncio.run(main())
    assert contents(file.parent) == before


def test_an_engine_can_be_opened_while_the_file_is_read(ended: tuple[Path, str]) -> None:
    file, _ = ended

    async def main() -> None:
        async with reader_of(file) as first, working(file) as engine:
            execution = await engine.start("flow")
            await execution.result(timeout=30)
            assert await every(first.executions())
            async with reader_of(file) as second:
                newest, *_ = await every(second.executions(limit=1))
                assert newest["execution_id"] == execution.id

    asyncio.run(main())


def test_a_store_that_was_killed_in_the_middle_can_be_read(ended: tuple[Path, str]) -> None:
    file, execution_id = ended
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE executions SET workflow = 'renamed'")
        # What is in the log only, as when the process ends without closing the file.
        copy = file.with_name("copy.db")
        for end in ("", "-wal"):
            copy.with_name(copy.name + end).write_bytes(
                file.with_name(file.name + end).read_bytes()
            )

    async def main() -> None:
        async with reader_of(copy) as reader:
            (item,) = await every(reader.executions())
            assert (item["execution_id"], item["workflow"]) == (execution_id, "renamed")

    asyncio.run(main())


def test_what_is_no_store_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to be read as one" * 10)
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE tasks (id)")
    before = contents(tmp_path)

    async def open_and_close(address: str) -> None:
        async with StoreReader(address, settings()):
            pass

    refusals: dict[str, tuple[type[penstock.PenstockError], str]] = {
        f"sqlite:///{text}": (StoreError, "isn't a store of Penstock: file is not a database"),
        f"sqlite:///{foreign}": (StoreError, "isn't a store of Penstock: no such table: meta"),
        f"sqlite:///{tmp_path / 'none.db'}": (StoreError, "there is no store"),
        f"sqlite:///{tmp_path}": (StoreError, "there is no store"),
        "memory://": (SettingsError, "isn't a file that can be read"),
        "redis://localhost/0": (SettingsError, "isn't a file that can be read"),
    }
    for address, (error, message) in refusals.items():
        with pytest.raises(error, match=message):
            asyncio.run(open_and_close(address))
    assert contents(tmp_path) == before


@pytest.mark.parametrize(("schema", "hint"), [("4", "'penstock serve --store"), ("99", "reads 7$")])
def test_a_store_of_another_version_is_refused(
    ended: tuple[Path, str], schema: str, hint: str
) -> None:
    file, _ = ended
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (schema,))
        connection.commit()

    async def main() -> None:
        async with reader_of(file):
            pass

    with pytest.raises(SchemaMismatch, match=f"has schema {schema};.*{hint}"):
        asyncio.run(main())


def test_an_execution_that_is_not_there(ended: tuple[Path, str]) -> None:
    file, _ = ended

    async def main() -> None:
        async with reader_of(file) as reader:
            with pytest.raises(NotFound, match="no execution 'e1'"):
                await reader.execution("e1").status()

    asyncio.run(main())
