"""Handlers that a test holds up and lets go on.

So an execution is in the state that the test wants.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.runtime.timing import EngineTiming
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.waiting import PATIENCE_SECONDS, until_now


class Gates:
    """The handlers `gate`, `tell`, `grow` and `spend`.

    `gate` waits until the gate that its config names is opened; `tell` logs; `grow` returns a long
    text; `spend` reports tokens.

    `gate` logs the `lines` of its config before it waits. With `fails`, every attempt has a gate of
    its own, and that attempt fails behind it.
    """

    def __init__(self) -> None:
        self._open: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        self._lock = threading.Lock()
        self.passed: list[str] = []
        """What the gates were asked for, in that order."""

    def registry(self) -> Registry:
        return Registry(
            [
                Handler("gate", self._wait),
                Handler("tell", _tell),
                Handler("grow", _grow),
                Handler("spend", _spend),
            ]
        )

    def open(self, name: str) -> None:
        self._of(name).set()

    def open_all(self) -> None:
        with self._lock:
            events = list(self._open.values())
        for event in events:
            event.set()

    def until_asked(self, name: str) -> None:
        until_now(lambda: name in self.passed, f"a node waits at {name}")

    def _of(self, name: str) -> threading.Event:
        with self._lock:
            return self._open[name]

    def _wait(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        for line in config.get("lines", ()):
            ctx.log.info("%s at attempt %s", line, ctx.attempt)
        gate = f"{config['gate']} {ctx.attempt}" if "fails" in config else config["gate"]
        self.passed.append(gate)
        assert self._of(gate).wait(PATIENCE_SECONDS)
        if ctx.attempt == config.get("fails"):
            raise RuntimeError("behind the gate")
        return {"gate": config["gate"]}


def _tell(config: dict[str, Any], ctx: Context) -> None:
    ctx.log.info("attempt %s of %s", ctx.attempt, ctx.node_id)
    for line in config.get("lines", ()):
        ctx.log.warning(line)
    if ctx.attempt < config.get("until", 1):
        raise RuntimeError(f"not at attempt {ctx.attempt}")


def _grow(config: dict[str, Any]) -> dict[str, Any]:
    return {"text": "x" * config["bytes"]}


def _spend(config: dict[str, Any]) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": config["prompt"], "completion_tokens": config["completion"]}}


def gated(name: str, *gates: str) -> dict[str, Any]:
    """A chain of gates, each node with the name of its own."""
    nodes = [
        {
            "id": gate,
            "handler": "gate",
            "config": {"gate": f"{name} {gate}"},
            "dependencies": list(gates[:index][-1:]),
        }
        for index, gate in enumerate(gates)
    ]
    return {"name": name, "nodes": nodes}


class GatedService:
    """A service with gates, and a caller of it."""

    def __init__(self, service: Running, gates: Gates) -> None:
        self.service = service
        self.gates = gates
        self.api = Caller(service.address)


@contextmanager
def gated_service(
    folder: Path, *, timing: EngineTiming | None = None, **settings: Any
) -> Iterator[GatedService]:
    gates = Gates()
    with running_service(folder, gates.registry(), timing=timing, **settings) as service:
        try:
            yield GatedService(service, gates)
        finally:
            gates.open_all()
