"""How late live events reach each of 100 readers, and how many a second can be sent.

`python -m benchmarks.events`

The engine and the HTTP server are in this process, the readers in another one, on the same clock. A
commit's time is taken when the engine is told that it is durable; an event's when the reader's
process gets its bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette

import penstock
from benchmarks.workloads import Document, diamond
from penstock.api import problems
from penstock.api.events import events_routes
from penstock.api.timing import ApiTiming
from penstock.config import Settings
from penstock.engine.commands import Commands
from penstock.runtime import run_loop

Key = tuple[str, int]


class Item(msgspec.Struct):
    execution_id: str
    seq: int


class Reader(asyncio.Protocol):
    """Notes when each event came; understands no more of HTTP than the lines with data."""

    def __init__(self, path: str, quiet_at: list[float]) -> None:
        self._request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self._rest = b""
        self._decoder = msgspec.json.Decoder(Item)
        self._quiet_at = quiet_at
        self.arrivals: list[tuple[str, int, float]] = []

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = self._quiet_at[0] = time.time()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'data: {"seq"'):
                item = self._decoder.decode(line[6:])
                self.arrivals.append((item.execution_id, item.seq, now))


async def read(port: int, path: str, count: int, out: Path) -> None:
    """Until the parent closes standard input and nothing has come for a second."""
    quiet_at = [time.time()]
    loop = asyncio.get_running_loop()
    readers = []
    for _ in range(count):
        _, reader = await loop.create_connection(lambda: Reader(path, quiet_at), "127.0.0.1", port)
        readers.append(reader)
    await loop.run_in_executor(None, sys.stdin.read)
    while time.time() - quiet_at[0] < 1.0:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    out.write_bytes(msgspec.msgpack.encode([reader.arrivals for reader in readers]))  # noqa: ASYNC240 -- the last thing it does


@asynccontextmanager
async def serving(engine: penstock.Engine) -> AsyncIterator[int]:
    service = engine.service
    routes = events_routes(service.live_events, service.item_events, ApiTiming())
    app = Starlette(routes=[routes])
    problems.install(app)
    config = uvicorn.Config(
        app, port=0, log_config=None, access_log=False, lifespan="off", ws="none", http="httptools"
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        engine.service.live_events.close()
        server.should_exit = True
        await running


def note_commits(engine: penstock.Engine) -> dict[Key, float]:
    committed: dict[Key, float] = {}
    publish = engine.service.live_events.on_commit

    def noted(changes: Sequence[Commands]) -> None:
        now = time.time()
        for commands in changes:
            committed.update(((commands.execution_id, line.seq), now) for line in commands.history)
        publish(changes)

    engine.service.live_events.on_commit = noted  # type: ignore[method-assign]
    return committed


def chain(length: int, handler: str, **config: Any) -> Document:
    nodes = [
        {
            "id": f"n{n}",
            "handler": handler,
            "config": config,
            "dependencies": [f"n{n - 1}"] if n else [],
        }
        for n in range(length)
    ]
    return {"name": f"chain-{handler}", "nodes": nodes}


async def one_execution(
    engine: penstock.Engine, document: Document, started: Callable[[str], Awaitable[None]]
) -> None:
    """Run one execution whose first node gives readers time to connect before events come."""
    document["nodes"].insert(0, {"id": "wait", "handler": "sleep", "config": {"seconds": 3}})
    document["nodes"][1]["dependencies"] = ["wait"]
    execution = await engine.start(document)
    await started(f"/executions/{execution.id}/events")
    await execution.result()


async def many_executions(
    engine: penstock.Engine,
    a_second: int,
    seconds: float,
    started: Callable[[str], Awaitable[None]],
) -> None:
    await started("/events")
    document = diamond()
    begin = time.monotonic()
    handles = []
    for number in range(int(a_second * seconds)):
        await asyncio.sleep(max(0.0, begin + number / a_second - time.monotonic()))
        handles.append(await engine.start(document))
    await asyncio.gather(*(handle.result() for handle in handles))


async def measure(name: str, readers: int, folder: Path) -> None:
    out = Path(tempfile.mkdtemp(dir=folder)) / "arrivals"
    process: asyncio.subprocess.Process | None = None
    store = f"sqlite:///{out}.db"
    async with (
        penstock.Engine(store, settings=Settings.load(environ={})) as engine,
        serving(engine) as port,
    ):
        committed = note_commits(engine)

        async def started(path: str) -> None:
            nonlocal process
            command = [
                sys.executable,
                "-m",
                "benchmarks.events",
                "--read",
                str(port),
                path,
                str(readers),
                str(out),
            ]
            process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
            while engine.service.live_events.streams < readers:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            committed.clear()  # these come from the store

        await WORK[name](engine, started)
        assert process is not None
        await process.communicate(b"")  # closes its standard input
    report(
        name,
        committed,
        msgspec.msgpack.decode(out.read_bytes(), type=list[list[tuple[str, int, float]]]),
    )


def report(
    name: str, committed: dict[Key, float], arrivals: list[list[tuple[str, int, float]]]
) -> None:
    late = sorted(
        (at - committed[execution_id, seq]) * 1000
        for arrived in arrivals
        for execution_id, seq, at in arrived
        if (execution_id, seq) in committed
    )
    first, last = min(committed.values()), max(at for arrived in arrivals for *_, at in arrived)
    assert len(late) == len(committed) * len(arrivals), (
        f"{len(late)} of {len(committed)} x {len(arrivals)} events came"
    )
    quantiles = statistics.quantiles(late, n=100)
    rate = len(late) / (last - first)
    print(
        f"| {name:<44} | {len(late):>8,} | {rate:>8,.0f} | {quantiles[49]:>6.1f} | "
        f"{quantiles[98]:>6.1f} |",
        flush=True,
    )


Work = Callable[[penstock.Engine, Callable[[str], Awaitable[None]]], Awaitable[None]]
WORK: dict[str, Work] = {
    "one execution, a node each 10 ms": lambda e, s: one_execution(
        e, chain(300, "sleep", seconds=0.01), s
    ),
    "one execution, as fast as it goes": lambda e, s: one_execution(e, chain(1000, "noop"), s),
    "all, 50 diamonds/s": lambda e, s: many_executions(e, 50, 6.0, s),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=100)
    parser.add_argument(
        "--folder", type=Path, default=Path.cwd(), help="where the store's files go: not tmpfs"
    )
    parser.add_argument("--only", default="", help="work whose name contains this")
    parser.add_argument(
        "--read", nargs=4, metavar=("PORT", "PATH", "COUNT", "OUT"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.read:
        port, path, count, out = arguments.read
        run_loop(read(int(port), path, int(count), Path(out)))
        return
    print(f"{arguments.readers} readers; every event reached every reader once\n")
    print(
        f"| {'what they follow':<44} | events | events/s | p50 ms | p99 ms |\n|---|--:|--:|--:|--:|"
    )
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="penstock-events-") as directory:
        for name in WORK:
            if arguments.only in name:
                run_loop(measure(name, arguments.readers, Path(directory)))


if __name__ == "__main__":
    main()
