"""The process beside a worker: sends the worker's heartbeats while the worker's own loop can't.

The worker's loop sends its heartbeats by itself. When it is blocked, or a thread holds Python's
lock, it can't, and the worker would count as dead, with all its tasks. So the worker tells this
process every second that it is there and for how long it may be silent, which is as long as its
tasks may run. While it is silent this process sends the heartbeats, and stops

- when the worker has ended: the pipe is closed, or this process has another parent;
- when the worker is stopped (SIGSTOP): it does nothing then, and may never do anything again;
- when the worker has been silent for longer than its tasks may run: it is stuck.

It is started by `penstock.worker.heartbeats`, as a script. Until it is needed it imports nothing
but a few modules of the standard library, so it takes about 10 MB and 50 ms; what it needs to reach
the store it imports then.

Standard input: a line of JSON (`Order`), then lines of
    loop SECONDS    the worker's loop runs, and may be silent for so long
    here            the worker's interpreter runs, whatever its loop does
`Order.dumps` is a file descriptor: the stacks of the worker's threads come there when this process
sends `DUMP_SIGNAL`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LOOK_SECONDS = 0.25
SILENT_SECONDS = 2.0
"""After so long, or `Order.silent_seconds`, this process sends the heartbeats."""
GIL_HELD_SECONDS = 1.0
"""After so long it asks for the stacks of an interpreter that doesn't run."""
DUMPED_SECONDS = 0.5
"""By then the stacks have come."""
CALL_SECONDS = 4.0
AGAIN_SECONDS = 1.0
"""Between two attempts to reach a store that can't be reached."""
DUMP_SIGNAL: int = getattr(signal, "SIGURG", 0)
"""Ignored by whoever doesn't expect it, and used by nobody else.

Windows has none, and no process beside a worker.
"""
STOPPED_STATES = ("T", "t")


class Worker:
    """The process that started this one, as far as it can be seen from outside."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def has_ended(self) -> bool:
        return os.getppid() != self.pid

    @property
    def is_stopped(self) -> bool:
        return self._state().startswith(STOPPED_STATES)

    def _state(self) -> str:
        """The worker's process state, as `ps` writes it; empty if it can't be known."""
        try:
            # not by pathlib, which would have to be imported
            path = f"/proc/{self.pid}/stat"
            with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                text = file.read()
        except OSError:
            return self._ask_ps()
        # the name of the program stands in brackets before the state, and may contain brackets
        return text.rpartition(")")[2].strip()

    def _ask_ps(self) -> str:
        import subprocess  # noqa: PLC0415 -- only where there is no /proc

        command = ["ps", "-o", "stat=", "-p", str(self.pid)]
        try:
            ps = subprocess.run(  # noqa: S603
                command, capture_output=True, check=False, text=True
            )
        except OSError:
            return ""
        return ps.stdout.strip()

    def ask_for_stacks(self) -> None:
        os.kill(self.pid, DUMP_SIGNAL)


class Silence:
    """What the worker has said, and for how long it has said nothing."""

    def __init__(self, now: float, patience_seconds: float) -> None:
        self._loop_at = self._interpreter_at = now
        self.patience_seconds = patience_seconds
        self._rest = b""

    def hear(self, data: bytes, now: float) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, _, value = line.partition(b" ")
            self._interpreter_at = now
            if word == b"loop":
                self._loop_at = now
                self.patience_seconds = float(value)

    def forgive(self, now: float) -> None:
        """Count silence from now on: the worker couldn't have spoken before."""
        self._loop_at = self._interpreter_at = now

    def of_loop(self, now: float) -> float:
        return now - self._loop_at

    def of_interpreter(self, now: float) -> float:
        return now - self._interpreter_at


class Companion:
    def __init__(self, order: dict[str, Any], worker: Worker) -> None:
        self._order = order
        self._worker = worker
        self._silent_seconds = order.get("silent_seconds", SILENT_SECONDS)
        self._silence = Silence(time.monotonic(), order["patience_seconds"])
        self._next_beat = 0.0
        self._gave_up = self._is_cut_off = False
        self._asked_at: float | None = None
        self._dump = b""

    def hear(self, data: bytes) -> None:
        self._silence.hear(data, time.monotonic())

    def hear_dump(self, data: bytes) -> None:
        self._dump += data

    def look(self) -> None:
        now = time.monotonic()
        is_loop_silent = self._silence.of_loop(now) >= self._silent_seconds
        is_interpreter_silent = self._silence.of_interpreter(now) >= GIL_HELD_SECONDS
        if not is_loop_silent and not is_interpreter_silent:
            self._gave_up = False
            self._asked_at = None
            return
        if self._worker.is_stopped:
            self._silence.forgive(now)
            return
        if is_interpreter_silent:
            self._look_who_holds_the_gil(now)
        if is_loop_silent:
            self._keep_alive(now)

    def _look_who_holds_the_gil(self, now: float) -> None:
        if self._asked_at is None:
            self._asked_at = now
            self._dump = b""
            if self._order["dumps"] is not None:
                self._worker.ask_for_stacks()
        elif self._dump and now - self._asked_at >= DUMPED_SECONDS:
            names, stacks = who_runs(self._dump.decode(errors="replace"), self._order["handlers"])
            self._dump = b""
            holders = " or ".join(f"the handler {name}" for name in names)
            self._log(
                "the worker %s hasn't run for %.1f s: %s holds Python's lock "
                "(a long regular expression, a call into C), and all its other tasks wait; "
                "runs_in='process' would keep it from them",
                self._order["worker_id"],
                self._silence.of_interpreter(now),
                holders or "something that is no handler",
                stack=stacks,
            )

    def _keep_alive(self, now: float) -> None:
        silent_seconds = self._silence.of_loop(now)
        if silent_seconds > self._silence.patience_seconds:
            if not self._gave_up:
                self._gave_up = True
                self._log(
                    "the worker %s has been stuck for %.0f s, longer than any of its tasks may "
                    "run: it gets no more heartbeats, and its tasks will be taken back",
                    self._order["worker_id"],
                    silent_seconds,
                )
            return
        if now < self._next_beat:
            return
        try:
            send_heartbeat(self._order["store"], self._order["worker_id"])
            self._next_beat = now + self._order["heartbeat_seconds"]
            self._is_cut_off = False
        except Exception as error:  # noqa: BLE001 -- whatever it is, the next attempt may succeed
            self._next_beat = now + AGAIN_SECONDS
            if not self._is_cut_off:
                self._is_cut_off = True
                self._log(
                    "the worker %s is blocked, and can't be kept alive: %s",
                    self._order["worker_id"],
                    error,
                )

    def _log(self, text: str, *values: Any, stack: str = "") -> None:
        import logging  # noqa: PLC0415 -- see the module's docstring, and so below

        from penstock.config import Settings  # noqa: PLC0415
        from penstock.telemetry.logs import configure_logging  # noqa: PLC0415

        if not logging.getLogger().handlers:
            configure_logging(Settings(**self._order["logging"]))
            # the worker itself has logged what the stores would say about their servers
            logging.getLogger("penstock.stores").setLevel(logging.ERROR)
        extra = {"stack": stack} if stack else None
        logging.getLogger("penstock.worker").warning(text, *values, extra=extra)


def send_heartbeat(store: str, worker_id: str) -> None:
    """Send a heartbeat, on a connection of its own each time.

    The store may be somewhere else by now.
    """
    import asyncio  # noqa: PLC0415

    from penstock.stores.redis.connection import Server  # noqa: PLC0415
    from penstock.stores.redis.fleet import keep_alive  # noqa: PLC0415

    async def send() -> None:
        server = Server(store)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await server.open()
                await keep_alive(server, worker_id)
        finally:
            await server.close()

    asyncio.run(send())


def who_runs(dump: str, handlers: list[tuple[str, str, int, int]]) -> tuple[list[str], str]:
    """Handlers whose code is on a stack of the dump that `faulthandler` wrote, and their stacks.

    All stacks if there is no such handler. `handlers`: name, file, first and last line.
    """
    running: list[str] = []
    stacks: list[str] = []
    for stack in dump.strip().split("\n\n"):
        names = _handlers_on(stack, handlers)
        if names:
            running += [name for name in names if name not in running]
            stacks.append(stack)
    return running, "\n\n".join(stacks) if stacks else dump.strip()


def _handlers_on(stack: str, handlers: list[tuple[str, str, int, int]]) -> list[str]:
    names: list[str] = []
    for file, line in frames(stack):
        for name, handler_file, first, last in handlers:
            if file == handler_file and first <= line <= last:
                names.append(name)
    return names


def frames(stack: str) -> Iterator[tuple[str, int]]:
    """Frames of a dump (`  File "/work/handlers.py", line 7 in slow`), the innermost first."""
    for text in stack.splitlines():
        file, _, rest = text.strip().removeprefix('File "').rpartition('", line ')
        number = rest.partition(" ")[0]
        if file and number.isdigit():
            yield file, int(number)


def main() -> None:
    # a terminal's Ctrl-C or a service manager's SIGTERM is for the worker, which may want to finish
    # its tasks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    worker = Worker(int(sys.argv[1]))
    first, _, rest = _first_line().partition(b"\n")
    order = json.loads(first)
    companion = Companion(order, worker)
    companion.hear(rest)
    dumps = order["dumps"]
    sources = [0] if dumps is None else [0, dumps]
    look_seconds = min(LOOK_SECONDS, order.get("silent_seconds", SILENT_SECONDS) / 2)

    while not worker.has_ended:
        ready, _, _ = select.select(sources, [], [], look_seconds)
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                return
            companion.hear(data)
        if dumps in ready:
            data = os.read(dumps, 65536)
            if not data:
                return
            companion.hear_dump(data)
        companion.look()


def _first_line() -> bytes:
    data = b""
    while b"\n" not in data:
        chunk = os.read(0, 65536)
        if not chunk:
            sys.exit(0)
        data += chunk
    return data


if __name__ == "__main__":
    main()
