"""Handlers whose calls can be counted by others, and documents that use them.

A worker process has this as `--handlers`. Each call writes a line, synced to the disk before
anything else happens, to a file of its process in the folder `WORKS_FOLDER`.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
import os
import random
import re
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import penstock

FOLDER_VARIABLE = "WORKS_FOLDER"
STEADY = {
    "max_attempts": 6,
    "initial_delay_seconds": 0.01,
    "max_delay_seconds": 0.05,
    "jitter_seconds": 0.01,
}


class Call(NamedTuple):
    """A line of the log.

    `event` is `begun` or `done`; a call that was stopped has no second line.
    """

    event: str
    execution_id: str
    node: str
    attempt: int
    pid: int
    at: float


def write(event: str, ctx: penstock.Context) -> None:
    pid = os.getpid()
    line = f"{event} {ctx.execution_id} {ctx.node_id} {ctx.attempt} {pid} {time.time():.6f}\n"
    descriptor = os.open(
        Path(os.environ[FOLDER_VARIABLE]) / f"{pid}.calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT
    )
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def calls(folder: Path) -> list[Call]:
    """Everything that was written so far, by time.

    Half a line is a process that was killed, or is still writing.
    """
    calls_so_far: list[Call] = []
    for file in folder.glob("*.calls"):
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            parts = line.split()
            if line.endswith("\n"):
                calls_so_far.append(
                    Call(
                        parts[0], parts[1], parts[2], int(parts[3]), int(parts[4]), float(parts[5])
                    )
                )
    return sorted(calls_so_far, key=lambda call: call.at)


@penstock.handler("work_note")
def note(_config: Any, ctx: penstock.Context) -> dict[str, Any]:
    write("begun", ctx)
    return {"node": ctx.node_id, "attempt": ctx.attempt}


@penstock.handler("work_echo")
def echo(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    """Returns its config: what it was given is recorded, as it was filled in."""
    write("begun", ctx)
    return config


@penstock.handler("work_pause")
async def pause(config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
    """For `seconds`, or until a file of the name `until` is in the folder."""
    write("begun", ctx)
    until = Path(os.environ[FOLDER_VARIABLE]) / config.get("until", "never")
    end = time.monotonic() + config.get("seconds", 3600)
    while time.monotonic() < end and not until.exists():  # noqa: ASYNC110 -- another process makes the file
        await asyncio.sleep(min(0.02, config.get("seconds", 0.02)))
    write("done", ctx)
    return {"attempt": ctx.attempt}


@penstock.handler("work_at")
async def end_at(config: dict[str, Any], _ctx: penstock.Context) -> None:
    """Ends `at` a time of day, so that others can do something at the same moment."""
    await asyncio.sleep(max(0.0, config["at"] - time.time()))


class Gate:
    """Of one execution, in the one worker that has all its tasks."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.waiting = 0
        self.passed: list[float] = []


_gates: defaultdict[str, Gate] = defaultdict(Gate)


@penstock.handler("work_gate")
async def pass_gate(config: dict[str, Any], ctx: penstock.Context) -> None:
    """Waits until all `parties` of the execution are there, then all finish together.

    How close together is written down.
    """
    gate = _gates[ctx.execution_id]
    gate.waiting += 1
    if gate.waiting == config["parties"]:
        gate.is_open.set()
    await gate.is_open.wait()
    gate.passed.append(time.perf_counter())
    if len(gate.passed) == config["parties"]:
        del _gates[ctx.execution_id]
        with (Path(os.environ[FOLDER_VARIABLE]) / "spreads").open("a", encoding="utf-8") as file:
            file.write(f"{1000 * (gate.passed[-1] - gate.passed[0]):.3f}\n")


def spreads(folder: Path) -> list[float]:
    """Milliseconds between the first and the last through each gate."""
    return [float(line) for line in (folder / "spreads").read_text(encoding="utf-8").split()]


@penstock.handler("work_fail")
def fail(config: dict[str, Any], ctx: penstock.Context) -> int:
    """The first `times` attempts; for good if that is what `hopeless` is."""
    write("begun", ctx)
    if "hopeless" in config and config["times"] == config["hopeless"]:
        raise penstock.Terminal("it was to fail for good")
    if ctx.attempt <= config.get("times", 1_000_000):
        raise RuntimeError(f"attempt {ctx.attempt} was to fail")
    return ctx.attempt


@penstock.handler("work_poison")
def poison(_config: Any, ctx: penstock.Context) -> None:
    write("begun", ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@penstock.handler("work_block")
async def block(config: dict[str, Any], ctx: penstock.Context) -> int:
    """Blocks the loop for `seconds`, at its first attempt."""
    write("begun", ctx)
    if ctx.attempt == 1:
        threading.Event().wait(config["seconds"])
    write("done", ctx)
    return ctx.attempt


@penstock.handler("work_hold")
def hold(config: dict[str, Any], ctx: penstock.Context) -> int:
    """Holds the GIL for `seconds` at least.

    In a C function that doesn't release it, or in a regular expression (`pattern`).
    """
    write("begun", ctx)
    if config.get("pattern"):
        hold_in_pattern(config["seconds"])
    else:
        ctypes.PyDLL(None).sleep(config["seconds"])
    write("done", ctx)
    return ctx.attempt


def hold_in_pattern(seconds: float) -> None:
    """A regular expression that takes twice as long for each letter more."""
    length, took = 18, 0.0
    while took < seconds:
        begun = time.perf_counter()
        assert re.match(r"(a+)+$", "a" * length + "b") is None
        took = time.perf_counter() - begun
        length += max(1, math.ceil(math.log2(seconds / took)))


if "PENSTOCK_NEW_WORKS" in os.environ:  # a later deployment of the same module

    @penstock.handler("work_new")
    async def new(_config: Any, ctx: penstock.Context) -> int:
        write("begun", ctx)
        return ctx.attempt

    @penstock.handler("work_moved", queue=os.environ.get("PENSTOCK_MOVED_QUEUE"))
    async def moved(_config: Any, ctx: penstock.Context) -> int:
        write("begun", ctx)
        return ctx.attempt


def node(
    name: str, parents: Iterable[str] = (), handler: str = "work_note", **fields: Any
) -> dict[str, Any]:
    return {
        "id": name,
        "handler": handler,
        "dependencies": list(parents),
        "retry": STEADY,
        **fields,
    }


def document(name: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "nodes": list(nodes)}


def single(name: str, handler: str, **fields: Any) -> dict[str, Any]:
    return document(name, node("a", (), handler, **fields))


def diamond() -> dict[str, Any]:
    return document("diamond", node("a"), node("b", "a"), node("c", "a"), node("d", "bc"))


def chain(length: int, handler: str = "work_note", **fields: Any) -> dict[str, Any]:
    nodes = [node(f"n{i}", [f"n{i - 1}"] if i else [], handler, **fields) for i in range(length)]
    return document(f"chain-{length}-{handler}", *nodes)


def fan(width: int, handler: str = "work_note", **fields: Any) -> dict[str, Any]:
    """So many parents that finish together, and a join."""
    parents = [node(f"n{i}", (), handler, **fields) for i in range(width)]
    return document(
        f"fan-{width}-{handler}", *parents, node("join", [parent["id"] for parent in parents])
    )


def any_dag(seed: int, size: int = 12) -> dict[str, Any]:
    """A document half of whose nodes take a moment.

    Whatever happens to a worker then finds claimed tasks.
    """
    choose = random.Random(seed)
    names = [f"n{i}" for i in range(size)]
    slow: dict[str, Any] = {"handler": "work_pause", "config": {"seconds": 0.1}}
    nodes = [
        node(
            name,
            choose.sample(names[:i], min(i, choose.randint(0, 3))),
            **(slow if choose.random() < 0.5 else {}),
        )
        for i, name in enumerate(names)
    ]
    return document(f"dag-{seed}", *nodes)
