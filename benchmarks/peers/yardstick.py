"""The work that everybody is given, and how it is counted.

Plain Python: it runs in every peer's environment.

A script is called with its addresses and the names of workloads (none: all), and prints a line of
JSON for each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CHAIN = 100
FAN = 100
DIAMONDS = 500
DEPTH, WIDTH = 100, 100
SUBMISSIONS = 20
LIGHT = 40
LIGHT_SECONDS = 0.01


@dataclass(frozen=True)
class Workload:
    title: str
    unit: str
    size: int
    """How many units a whole run has. A slow peer may do fewer; it says how many."""
    is_rate: bool = False
    """More is better: units per second. Otherwise milliseconds per unit, and less is better."""

    def value(self, seconds: float, count: int) -> float:
        return count / seconds if self.is_rate else seconds / count * 1000


WORKLOADS = {
    "chain": Workload(f"chain of {CHAIN}", "ms per hop", CHAIN),
    "fan": Workload(f"1 → {FAN} → 1", "ms", 1),
    "diamonds": Workload(f"{DIAMONDS} diamonds at once", "workflows/s", DIAMONDS, is_rate=True),
    "layers": Workload(
        f"{DEPTH * WIDTH:,} nodes in {DEPTH} layers", "tasks/s", DEPTH * WIDTH, is_rate=True
    ),
    "latency": Workload("submit to first task", "ms", SUBMISSIONS),
    "light": Workload(f"{LIGHT} light tasks in sequence", "ms per task over a bare loop", LIGHT),
}


class Unsupported(Exception):
    """The peer can't express this work; the message says why."""


@dataclass(frozen=True)
class Measured:
    seconds: float
    count: int
    note: str = ""


def light() -> None:
    """10 ms of Python: a fixed time, so that everything above it is the engine's."""
    end = time.perf_counter() + LIGHT_SECONDS
    while time.perf_counter() < end:
        sum(range(100))


def bare(count: int = LIGHT) -> float:
    """Seconds that light tasks take without an engine, here and now."""
    began = time.perf_counter()
    for _ in range(count):
        light()
    return time.perf_counter() - began


def parents(depth: int, width: int) -> dict[str, list[str]]:
    """Layers in which each node has two parents in the layer before; parents come first."""
    return {
        f"n{d}_{w}": [f"n{d - 1}_{w}", f"n{d - 1}_{(w + 1) % width}"] if d else []
        for d in range(depth)
        for w in range(width)
    }


def answer(version: str, work: Mapping[str, Callable[[], Measured]], names: Iterable[str]) -> None:
    for name in names or WORKLOADS:
        line: dict[str, Any] = {"workload": name, "version": version}
        try:
            measured = work[name]()
        except Unsupported as error:
            line["unsupported"] = str(error)
        else:
            line |= {
                "value": WORKLOADS[name].value(measured.seconds, measured.count),
                "count": measured.count,
            }
            line |= {"note": measured.note} if measured.note else {}
        print(json.dumps(line), flush=True)
