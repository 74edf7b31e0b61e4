"""The sandbox's pool: a few child processes with limits, and whose turn it is to use them.

A process is started when the first job needs one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import msgspec

from penstock.config import Settings
from penstock.sandbox.frames import (
    ANSWER,
    EXIT_OUT_OF_MEMORY,
    FAILED,
    LENGTH,
    READY,
    Header,
    Job,
    JobFailed,
    Overrun,
)

log = logging.getLogger("penstock.sandbox")

CHILD_MODULES = ("penstock.engine.preparing", "cel_expr_python.cel")
"""Imported by every child before its first job: most jobs need them, and their memory shouldn't
count.
"""
SLOW_MACHINE = 5.0
"""By the clock, an answer may take so many times its processor time, and `GRACE_SECONDS`: then the
child is killed.
"""
GRACE_SECONDS = 5.0
KILLED_TIMES_MAX = 3
"""A child that somebody else kills (an operator, the kernel when memory is short) is replaced so
often for one job.
"""
SPAWN_RETRY_SECONDS = 0.5
PORTION_BYTES = 1024 * 1024
"""A part is sent in portions: the loop copies what the pipe doesn't take at once."""
READ_BYTES = 1024 * 1024
LARGE_JOB_BYTES = 8 * 1024 * 1024
"""Jobs of this size go one after another: each may take all the memory that a child is allowed."""
FRAME_BYTES = 64 * 1024
"""Around the largest output."""
ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")
"""All that a child gets of the environment: the rest may hold secrets."""
MEMORY_SIGNALS = frozenset({"SIGABRT", "SIGSEGV", "SIGBUS"})
"""How a library ends when it is refused memory and doesn't look."""
TIME_SIGNALS = frozenset({"SIGPROF", "SIGXCPU"})


class SandboxPool:
    def __init__(
        self, *, processes: int, seconds: float, memory_bytes: int, answer_bytes_max: int
    ) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._answer_bytes_max = answer_bytes_max
        self._turns = Turns(processes)
        self._large_turns = Turns(1)
        self._idle: list[asyncio.subprocess.Process] = []
        self._children: set[asyncio.subprocess.Process] = set()
        """All that may still live."""
        self._starting: set[asyncio.Task[asyncio.subprocess.Process]] = set()

    async def run(self, job: Job) -> AsyncIterator[bytes]:
        """The answers, as they come. Raises `Overrun`, or `JobFailed` for a mistake of ours."""
        async with self._memory_for(job), aclosing(self._run(job)) as answers:
            async for answer in answers:
                yield answer

    @asynccontextmanager
    async def _memory_for(self, job: Job) -> AsyncIterator[None]:
        if sum(map(len, job.parts)) < LARGE_JOB_BYTES:
            yield
            return
        await self._large_turns.take(job.turn)
        try:
            yield
        finally:
            self._large_turns.give_back()

    async def _run(self, job: Job) -> AsyncGenerator[bytes]:
        answered = 0
        killed = 0
        while True:
            await self._turns.take(job.turn)
            try:
                skipped = 0
                async for answer in self._attempt(job):
                    skipped += 1
                    if skipped > answered:  # of a job that is done again, the first ones are known
                        answered += 1
                        yield answer
                return  # noqa: TRY300 -- the loop is for children that were killed
            except _ChildKilledError as error:
                killed += 1
                if killed >= KILLED_TIMES_MAX:
                    raise Overrun(f"the process that computed it {error}, {killed} times") from None
                log.warning("a sandbox process %s; its job is done again", error)
            finally:
                self._turns.give_back()

    async def close(self) -> None:
        await asyncio.gather(*self._starting, return_exceptions=True)
        for child in list(self._children):
            await _end(child)
        self._children.clear()
        self._idle.clear()

    async def _attempt(self, job: Job) -> AsyncIterator[bytes]:
        child = await self._child()
        seconds = job.seconds or self._seconds
        is_done = False
        try:
            sending = asyncio.ensure_future(_send(child, job, seconds))
            try:
                async for answer in self._answers(child, seconds):
                    yield answer
                await sending
                is_done = True
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        except (asyncio.IncompleteReadError, ConnectionError):
            returncode = await child.wait()
            raise _reason(returncode, seconds, self._memory_bytes) from None
        finally:
            if is_done:
                self._idle.append(child)
            else:  # what it would say next is anybody's guess
                _kill(child)

    async def _answers(
        self, child: asyncio.subprocess.Process, seconds: float
    ) -> AsyncIterator[bytes]:
        stdout: Any = child.stdout
        patience = SLOW_MACHINE * seconds + GRACE_SECONDS
        while True:
            try:
                async with asyncio.timeout(patience):
                    head = await stdout.readexactly(LENGTH.size + 1)
                    (size,) = LENGTH.unpack(head[: LENGTH.size])
                    kind = head[LENGTH.size :]
                    if size > self._answer_bytes_max:
                        limit = _format_bytes(self._answer_bytes_max)
                        raise Overrun(
                            f"the result has {size:,} bytes;"
                            f" the limit is {limit} (output_max_bytes)"
                        )
                    data = await stdout.readexactly(size)
            except TimeoutError:
                raise Overrun(f"there was no result after {patience:g} s") from None
            if kind == FAILED:
                raise JobFailed(data.decode("utf-8", "replace"))
            if kind != ANSWER:
                return
            yield data

    async def _child(self) -> asyncio.subprocess.Process:
        self._children = {child for child in self._children if child.returncode is None}
        while self._idle:
            child = self._idle.pop()
            if child.returncode is None:
                return child

        while True:
            starting = asyncio.create_task(self._spawn())
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)
            try:
                return await asyncio.shield(starting)
            except asyncio.CancelledError:
                # half a start can't be taken back; another job will need it
                starting.add_done_callback(self._add_idle)
                raise
            except OSError as error:
                # too many processes, or no memory for one: no fault of the job's
                log.warning("can't start a sandbox process, trying again: %s", error)
                await asyncio.sleep(SPAWN_RETRY_SECONDS)

    def _add_idle(self, starting: asyncio.Task[asyncio.subprocess.Process]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._idle.append(starting.result())

    async def _spawn(self) -> asyncio.subprocess.Process:
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "penstock.sandbox.child",
            str(self._memory_bytes),
            *CHILD_MODULES,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,
            limit=READ_BYTES,
        )
        self._children.add(child)
        stdout: Any = child.stdout
        try:
            await stdout.readexactly(len(READY))
        except asyncio.IncompleteReadError:
            returncode = await child.wait()
            raise ChildProcessError(f"it ended with {returncode} before it was ready") from None
        except BaseException:
            _kill(child)
            raise
        return child


def sandbox_of(settings: Settings, processes: int | None = None) -> SandboxPool:
    return SandboxPool(
        processes=processes or settings.expression_processes,
        seconds=settings.expression_seconds,
        memory_bytes=settings.expression_memory_bytes,
        answer_bytes_max=settings.output_max_bytes + FRAME_BYTES,
    )


def request_sandbox_of(settings: Settings) -> SandboxPool:
    """A pool for bodies and inputs of requests.

    It has one process of its own, so that no workflow's expressions wait for it.
    """
    return sandbox_of(settings, processes=1)


async def _send(child: asyncio.subprocess.Process, job: Job, seconds: float) -> None:
    """Part by part, so that no large copy is made and the loop gets its turn in between."""
    stdin: Any = child.stdin
    header = msgspec.msgpack.encode(Header(job.function, len(job.parts), seconds))
    for part in (header, *job.parts):
        stdin.write(LENGTH.pack(len(part)))
        view = memoryview(part)
        for start in range(0, len(part), PORTION_BYTES):
            stdin.write(view[start : start + PORTION_BYTES])
            await stdin.drain()


class _ChildKilledError(Exception):
    """By somebody else; the text says how."""


def _reason(returncode: int, seconds: float, memory_bytes: int) -> Exception:
    """Why a child ended before it had answered."""
    name = _signal_name(returncode)
    if name in TIME_SIGNALS:
        return Overrun(f"it took more than {seconds:g} s of computing time (expression_seconds)")
    if returncode == EXIT_OUT_OF_MEMORY or name in MEMORY_SIGNALS:
        limit = _format_bytes(memory_bytes)
        return Overrun(f"it needed more than {limit} of memory (expression_memory_bytes)")
    return _ChildKilledError(f"ended with {name or returncode}")


def _signal_name(returncode: int) -> str:
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return ""


def _format_bytes(count: int) -> str:
    mib = count / (1024 * 1024)
    return f"{mib:g} MiB" if mib >= 1 else f"{count:,} bytes"


def _kill(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        try:
            child.kill()
        except ProcessLookupError:
            return


async def _end(child: asyncio.subprocess.Process) -> None:
    """End a child, and wait until nothing of it is left, its pipes included."""
    _kill(child)
    await child.wait()
    stdin = child.stdin
    stdout = child.stdout
    if stdin is not None:
        stdin.close()
    if stdout is not None:
        with suppress(RuntimeError):  # whoever has a job in it reads there
            await stdout.read()


class Turns:
    """A fair limit to concurrency: of those who wait, one of each name after another."""

    def __init__(self, concurrency: int) -> None:
        self._free = concurrency
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def take(self, name: str) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it got the turn and can't use it any more
            raise

    def give_back(self) -> None:
        while self._waiting:
            name, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[name] = turns  # at the end: the others come first
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
