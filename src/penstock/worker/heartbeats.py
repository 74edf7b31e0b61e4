"""Heartbeats of a worker whose loop is blocked: `heartbeat_process`, beside it, sends them.

The loop sends heartbeats too, all the time, so a process that can't be started or has died leaves
the worker as it would be without one. It is started again, and both are logged.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import CodeType
from typing import Any

from penstock.config import REDIS_SCHEMES, Settings, scheme_of
from penstock.worker import heartbeat_process
from penstock.worker.registry import Handler
from penstock.worker.timing import WorkerTiming

log = logging.getLogger("penstock.worker")

SILENT_SECONDS_MIN = 0.2
END_SECONDS = 1.0


def heartbeats_for(
    settings: Settings,
    store: str,
    worker_id: str,
    handlers: Iterable[Handler],
    timing: WorkerTiming,
) -> Heartbeats | None:
    """Heartbeats by a process beside the worker; None where there can't be one.

    - The store is in the worker's own process: who blocks the loop there blocks the reaper too.
    - The store is of another package: the process beside the worker speaks Redis only.
    - On Windows nobody can wait for a pipe and for the time at once: the loop has to do it alone.
    """
    if scheme_of(store) not in {*REDIS_SCHEMES, "unix"} or sys.platform == "win32":
        return None

    heartbeat_seconds = timing.heartbeat_seconds
    locations: list[tuple[str, str, int, int]] = []
    for handler in handlers:
        locations += _code_locations(handler)
    order = {
        "store": store,
        "worker_id": worker_id,
        "heartbeat_seconds": heartbeat_seconds,
        # no later than the heartbeat that is missing: fast ones go with a short time until a worker
        # counts as dead
        "silent_seconds": min(
            heartbeat_process.SILENT_SECONDS, max(heartbeat_seconds, SILENT_SECONDS_MIN)
        ),
        "handlers": locations,
        "logging": {"log_level": settings.log_level, "log_format": settings.log_format},
    }
    return Heartbeats(order, timing)


class Heartbeats:
    def __init__(self, order: dict[str, Any], timing: WorkerTiming) -> None:
        self._order = order
        self._timing = timing
        self._process: subprocess.Popen[bytes] | None = None
        self._starting: asyncio.Future[None] | None = None
        self._pipe: int | None = None
        self._dumps: int | None = None
        self._promised_until = 0.0
        self._lock = threading.Lock()
        """Keeps others from writing to a pipe that is being closed.

        Its number may be another file's by then.
        """

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def run(self, longest_seconds: Callable[[], float]) -> None:
        """Run the process beside the worker, and tell it every second that the loop runs.

        `longest_seconds` answers how long the tasks that run now may still take.
        """
        hurry = self._order["silent_seconds"] / heartbeat_process.SILENT_SECONDS
        while True:
            if self._process is None or self._process.poll() is not None:
                await self._restart()
            self._promise(longest_seconds())
            await asyncio.sleep(self._timing.loop_told_seconds * hurry)

    def expect(self, seconds: float) -> None:
        """Note that a handler is about to be called that may block the loop for so long."""
        if time.monotonic() + seconds > self._promised_until:
            self._promise(seconds)

    def say_here(self) -> None:
        """Tell the process that the interpreter runs. Called from any thread."""
        self._write(b"here\n")

    def _promise(self, seconds: float) -> None:
        promised_seconds = seconds + self._timing.silence_slack_seconds
        self._promised_until = time.monotonic() + promised_seconds
        self._write(b"loop %.1f\n" % (promised_seconds + self._timing.silence_margin_seconds))

    def _write(self, line: bytes) -> None:
        """Write a message to the process: whole or not at all, since it is short.

        A process that doesn't read misses it; one that died is noticed.
        """
        with self._lock:
            if self._pipe is not None:
                with suppress(BlockingIOError, BrokenPipeError):
                    os.write(self._pipe, line)

    async def _restart(self) -> None:
        worker_id = self._order["worker_id"]
        if self._process is not None:
            log.warning(
                "the process beside the worker %s ended with %s; it is started again",
                worker_id,
                self._process.returncode,
            )
            self._forget()
            await asyncio.sleep(self._timing.companion_restart_seconds)
        try:
            self._starting = asyncio.ensure_future(asyncio.to_thread(self._start))
            await asyncio.shield(self._starting)
        except OSError as error:
            log.warning(
                "the process beside the worker %s can't be started (%s): "
                "the worker counts as dead if its loop is blocked",
                worker_id,
                error,
            )
            await asyncio.sleep(self._timing.companion_restart_seconds)

    def _start(self) -> None:
        dumps, self._dumps = os.pipe()
        try:
            # a full pipe must not hold whoever writes its stacks there
            os.set_blocking(self._dumps, False)
            # -P: modules beside the script must not stand in for the standard library's
            command = [sys.executable, "-P", heartbeat_process.__file__, str(os.getpid())]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            process = subprocess.Popen(  # noqa: S603 -- ourselves
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=(dumps,),
                start_new_session=True,
            )
        except OSError:
            os.close(self._dumps)
            self._dumps = None
            raise
        finally:
            os.close(dumps)

        assert process.stdin is not None  # noqa: S101 -- for the type checker
        can_dump = _register_dump(self._dumps)
        promised_seconds = max(0.0, self._promised_until - time.monotonic())
        patience = promised_seconds + self._timing.silence_margin_seconds
        order = {**self._order, "dumps": dumps if can_dump else None, "patience_seconds": patience}
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        os.set_blocking(process.stdin.fileno(), False)
        self._process = process
        self._pipe = process.stdin.fileno()

    def _forget(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with self._lock, suppress(OSError):
                self._pipe = None
                self._process.stdin.close()
        if self._dumps is not None:
            faulthandler.unregister(heartbeat_process.DUMP_SIGNAL)
            os.close(self._dumps)
            self._dumps = None

    async def close(self) -> None:
        """End the process; no heartbeat comes after this returns."""
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        process = self._process
        self._forget()
        self._process = None
        if process is not None:
            await asyncio.to_thread(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _register_dump(descriptor: int) -> bool:
    """Have this process write its stacks to the descriptor when the signal comes.

    False if the signal already means something else here.
    """
    if signal.getsignal(heartbeat_process.DUMP_SIGNAL) not in (signal.SIG_DFL, signal.SIG_IGN):
        return False
    faulthandler.register(
        heartbeat_process.DUMP_SIGNAL, file=descriptor, all_threads=True, chain=False
    )
    return True


def _code_locations(handler: Handler) -> list[tuple[str, str, int, int]]:
    """Where the handler's code is: its name, the file, the first and the last line."""
    code = code_of(handler.function)
    if code is None or handler.runs_in == "process":
        return []
    first = code.co_firstlineno
    lines = [line for _, _, line in code.co_lines() if line is not None]
    last = max(lines, default=first)
    return [(handler.name, code.co_filename, first, last)]


def code_of(function: Any) -> CodeType | None:
    """The code of a function, of one that is wrapped, or of a callable object."""
    while True:
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
