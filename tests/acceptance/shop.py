"""`python -m tests.acceptance.shop MODE FOLDER [EXECUTIONS]`: a program to be killed.

It uses Penstock. Everything that a judge needs is written outside the engine: `accepted` has each
execution that a call answered for, `handlers` each call of a handler. Both are synced to the disk
before anything goes on.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import penstock
from penstock.config import Settings
from penstock.errors import StoreError, StoreLocked
from tests.acceptance import regions, works
from tests.acceptance.people import people

FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
EXECUTIONS = int(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3].isdigit() else 500
AT_ONCE = 10
WORKS = "works"
"""The folder of the calls of `tests.acceptance.works`."""
STEADY = {
    "max_attempts": 150,
    "initial_delay_seconds": 0.01,
    "max_delay_seconds": 0.05,
    "jitter_seconds": 0.01,
}
FEW = {"max_attempts": 3, "initial_delay_seconds": 0.01, "jitter_seconds": 0}


def note(file: str, *lines: str) -> None:
    descriptor = os.open(FOLDER / file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lines(file: str) -> list[str]:
    path = FOLDER / file
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@penstock.handler("note")
def note_call(_config: Any, ctx: penstock.Context) -> dict[str, Any]:
    note("handlers", f"{ctx.execution_id} {ctx.node_id} {ctx.attempt}")
    return {"node": ctx.node_id, "attempt": ctx.attempt}


@penstock.handler("note_large")
def note_large_call(_config: Any, ctx: penstock.Context) -> dict[str, Any]:
    """Its output is kept in a file of its own."""
    return {**note_call(_config, ctx), "text": "x" * 300_000}


@penstock.handler("poison")
def poison(_config: Any, ctx: penstock.Context) -> None:
    note("handlers", f"{ctx.execution_id} {ctx.node_id} {ctx.attempt}")
    # what ran before it is on disk by then: a result that is lost costs an attempt
    threading.Event().wait(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


@penstock.handler("pause")
async def pause(config: dict[str, Any], ctx: penstock.Context) -> None:
    note("handlers", f"{ctx.execution_id} {ctx.node_id} {ctx.attempt}")
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(config["seconds"], over.set_result, None)
    await over


def document(
    name: str,
    edges: dict[str, Iterable[str]],
    *,
    handler: str = "note",
    retry: Any = None,
    **fields: Any,
) -> dict[str, Any]:
    nodes = [
        {"id": node, "handler": handler, "dependencies": list(parents), **fields}
        for node, parents in edges.items()
    ]
    return {"name": name, "defaults": {"retry": retry or STEADY}, "nodes": nodes}


DIAMOND = document("diamond", {"a": "", "b": "a", "c": "a", "d": "bc"})
CHAIN = document("chain", {"a": "", "b": "a", "c": "b", "d": "c", "e": "d"})
FAN = document(
    "fan",
    {"start": (), **{f"n{i}": ("start",) for i in range(8)}, "end": [f"n{i}" for i in range(8)]},
)
FLOWS = (DIAMOND, CHAIN, FAN)
MIXED = (*FLOWS, *regions.DOCUMENTS)
BAD = document("poison", {"bad": ""}, handler="poison", retry=FEW)
BAD_OF_ONE = document("poison", {"bad": ""}, handler="poison", retry=FEW, queue="one")
FRAIL = document("frail", {"a": ""}, retry=FEW, queue="one")
SLOW = document("slow", {"a": "", "b": "a", "c": "b"}, handler="pause", config={"seconds": 0.05})
LARGE = document("large", {"a": "", "b": "a", "c": "b"}, config={"text": "x" * 2000})
BULKY = document("bulky", {"a": "", "b": "a"}, handler="note_large")
EVERY = (*MIXED, BAD, FRAIL, SLOW, LARGE, BULKY)


def engine(**settings: Any) -> penstock.Engine:
    return penstock.Engine(f"sqlite:///{FOLDER}/store.db", settings=Settings(**settings))


async def accept(
    running: penstock.Engine, numbers: Iterable[int], flow: Callable[[int], dict[str, Any]]
) -> None:
    """The key makes a start that was accepted just before a kill the same one in the next life."""
    starts = [
        running.start(flow(number), {"n": number}, idempotency_key=f"order-{number}")
        for number in numbers
    ]
    handles = await asyncio.gather(*starts)
    note("accepted", *(handle.id for handle in handles))


async def finish(running: penstock.Engine) -> None:
    for execution_id in dict.fromkeys(lines("accepted")):
        await running.execution(execution_id).result()


async def be_killed(flows: Sequence[dict[str, Any]] = MIXED) -> None:
    async with engine() as running, people(running.service):
        for first in range(len(lines("accepted")), EXECUTIONS, AT_ONCE):
            await accept(
                running,
                range(first, min(first + AT_ONCE, EXECUTIONS)),
                lambda n: flows[n % len(flows)],
            )
        await finish(running)


async def be_killed_at_a_point() -> None:
    """With everything in it that is written in some way of its own."""
    await be_killed((*MIXED, BULKY))


async def be_poisoned() -> None:
    """One execution kills the process; the others have plenty of attempts."""
    async with engine() as running:
        await accept(running, range(6), lambda n: BAD if n == 2 else CHAIN)
        await finish(running)


async def be_poisoned_among_the_frail() -> None:
    """One execution kills the process, and the others wait for its thread.

    They have no more attempts than it has.
    """
    async with engine(worker_threads=1) as running:
        await accept(running, range(30), lambda n: BAD_OF_ONE if n == 0 else FRAIL)
        await finish(running)


async def be_stopped() -> None:
    """Says that it works, goes on until it is told to stop, and finishes in its next life."""
    last = bool(lines("accepted"))
    async with engine() as running:
        if not last:
            await accept(running, range(200), lambda _: SLOW)
        await finish(running)


async def fill_the_disk() -> None:
    """A limit on the size of files stands for a full disk."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with engine() as running:
        await accept(running, range(20), lambda _: LARGE)
        size = (FOLDER / "store.db-wal").stat().st_size
        # it has its full size from the start
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard_limit))
        refused = 0
        for number in range(20, 400):
            try:
                await accept(running, [number], lambda _: LARGE)
            except StoreError as error:
                refused += 1
                note("errors", str(error).replace("\n", " "))
            if refused >= 3:
                break
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard_limit, hard_limit))
        await accept(running, range(400, 420), lambda _: LARGE)
        await finish(running)


async def hold() -> None:
    async with engine():
        say("open")
        await asyncio.Event().wait()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


MODES: dict[str, Callable[[], Awaitable[None]]] = {
    mode.__name__: mode
    for mode in (
        be_killed,
        be_killed_at_a_point,
        be_poisoned,
        be_poisoned_among_the_frail,
        be_stopped,
        fill_the_disk,
        hold,
    )
}


async def main() -> None:
    (FOLDER / WORKS).mkdir(exist_ok=True)
    os.environ[works.FOLDER_VARIABLE] = str(FOLDER / WORKS)
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    await MODES[sys.argv[1]]()
    say("done")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except StoreLocked as error:
        say(str(error))
        sys.exit(3)
    except (asyncio.CancelledError, KeyboardInterrupt):
        say("stopped")
        sys.exit(4)
