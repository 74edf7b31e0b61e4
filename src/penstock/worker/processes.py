"""Child processes for `runs_in="process"`.

Each runs one call at a time, so a process that dies loses only its own task.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.engine.reasons import ErrorCategory
from penstock.errors import Retryable
from penstock.worker.protocol import LENGTH, READY, Line, Reply, Request

REPLY_BYTES_MAX = 256 * 1024 * 1024
OnLine = Callable[[str], None]
_said = msgspec.msgpack.Decoder(Reply | Line)


class ProcessDied(Retryable):
    """The handler's process ended before it answered.

    Tried again at once: there is nothing to wait for.
    """

    def __init__(self, returncode: int | None) -> None:
        code = returncode or 0
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        super().__init__(
            f"the handler's process ended with {how}", after=0.0, category=ErrorCategory.LOST
        )


class ProcessRunner:
    def __init__(self, processes_max: int) -> None:
        self._slots = asyncio.Semaphore(processes_max)
        self._idle: dict[str, list[asyncio.subprocess.Process]] = {}
        self._killed: list[asyncio.subprocess.Process] = []

    async def run(self, origin: str, begin: Callable[[], Request], on_line: OnLine) -> Reply:
        """Run a call in a process.

        `begin` is asked for the request when a process is there: waiting for one isn't the
        handler's time.

        `on_line` is given what the handler logs, as it comes.
        """
        async with self._slots:
            child = await self._take(origin)
            try:
                reply = await _ask(child, begin(), on_line)
            except BaseException:
                _kill(child)  # cancelled or broken: what it would answer next is anybody's guess
                self._killed.append(child)
                raise
            self._idle.setdefault(origin, []).append(child)
            return reply

    async def _take(self, origin: str) -> asyncio.subprocess.Process:
        self._killed = [child for child in self._killed if child.returncode is None]
        idle = self._idle.get(origin, [])
        while idle:
            child = idle.pop()
            if child.returncode is None:
                return child

        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "penstock.worker.child",
            *filter(None, [origin]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        try:
            await _pipes(child)[1].readexactly(len(READY))
        except asyncio.IncompleteReadError:
            raise ProcessDied(await child.wait()) from None
        except BaseException:
            _kill(child)
            self._killed.append(child)
            raise
        return child

    async def close(self) -> None:
        children: list[asyncio.subprocess.Process] = []
        for idle in self._idle.values():
            children += idle
        for child in children + self._killed:
            _kill(child)
            await child.wait()
        self._idle.clear()
        self._killed.clear()


async def _ask(child: asyncio.subprocess.Process, request: Request, on_line: OnLine) -> Reply:
    stdin, stdout = _pipes(child)
    data = msgspec.msgpack.encode(request)
    try:
        stdin.write(LENGTH.pack(len(data)) + data)
        await stdin.drain()
        while True:
            (size,) = LENGTH.unpack(await stdout.readexactly(LENGTH.size))
            said = _said.decode(await stdout.readexactly(min(size, REPLY_BYTES_MAX)))
            if isinstance(said, Reply):
                return said
            on_line(said.text)
    except (asyncio.IncompleteReadError, ConnectionError):
        raise ProcessDied(await child.wait()) from None


def _pipes(child: asyncio.subprocess.Process) -> tuple[Any, Any]:
    return child.stdin, child.stdout


def _kill(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        try:
            child.kill()
        except ProcessLookupError:
            return
