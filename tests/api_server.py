"""A service in this process for tests.

Real uvicorn on a free port and a real engine, on an event loop in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.config import Settings
from penstock.runtime import Engine
from penstock.runtime.http_server import address_of, bind
from penstock.runtime.serving import serving
from penstock.runtime.timing import EngineTiming
from penstock.worker.registry import Registry

START_SECONDS = 30.0


class Running:
    address = ""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.stop: asyncio.Event | None = None
        self.engine: Engine | None = None
        self.error: BaseException | None = None

    def call(self, work: Any) -> Any:
        """Run a coroutine on the service's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(START_SECONDS)


@contextmanager
def running_service(
    folder: Path,
    registry: Registry | None = None,
    *,
    timing: EngineTiming | None = None,
    **settings: Any,
) -> Iterator[Running]:
    running = Running()
    settings_given = {
        "host": "127.0.0.1",
        "port": 0,
        "http_private": True,
        "shutdown_grace_seconds": 1,
        **settings,
    }
    chosen = Settings.load(
        {"store": f"sqlite:///{folder / 'work.db'}", **settings_given}, environ={}, directory=folder
    )

    async def main() -> None:
        running.stop = asyncio.Event()
        with bind(chosen.host, chosen.port) as listening:
            async with (
                Engine(settings=chosen, registry=registry, timing=timing) as engine,
                serving(engine, chosen, listening),
            ):
                running.engine, running.address = engine, address_of(listening)
                running.ready.set()
                await running.stop.wait()

    def run() -> None:
        asyncio.set_event_loop(running.loop)
        try:
            running.loop.run_until_complete(main())
        except BaseException as error:  # noqa: BLE001 -- told to the test
            running.error = error
        finally:
            running.ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert running.ready.wait(START_SECONDS), "the service didn't start"
        if running.error is not None:
            raise running.error
        yield running
    finally:
        if running.stop is not None and not running.loop.is_closed():
            running.loop.call_soon_threadsafe(running.stop.set)
        thread.join(START_SECONDS)
        assert not thread.is_alive(), "the service didn't stop"
        running.loop.close()
    if running.error is not None:
        raise running.error  # it broke while it ran or when it stopped
