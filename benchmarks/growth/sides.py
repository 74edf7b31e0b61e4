"""Two stores side by side: one stays empty, the other grows, and both are measured in turn.

The machine's own speed varies from minute to minute, and that of two measurements right after one
another hardly does: so what is reported is the median of the ratios of such pairs.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Found = dict[str, float]
BETWEEN = ("wall", "cpu", "hop")
"""The figures that ratios are computed from.

µs per task of many diamonds at once, CPU and wall, and µs per node of a chain.
"""


class Side:
    """A `subject` process."""

    def __init__(self, profile: str, folder: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.growth.subject", profile, str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **order: Any) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(
                f"the measured process has ended ({self._process.wait()}); what it said is above"
            )
        answer: dict[str, float] = json.loads(line)
        return answer

    def close(self) -> None:
        self._process.communicate()  # closes its input, which is its sign to end


@contextmanager
def sides(profile: str, folder: Path, count: int) -> Iterator[list[Side]]:
    started = [Side(profile, folder) for _ in range(count)]
    try:
        yield started
    finally:
        for side in started:
            side.close()


def probe(side: Side, diamonds: int, hops: int) -> Found:
    """Measure the fixed work, whatever else the store holds.

    CPU by process, and the three figures of `BETWEEN`.
    """
    many = side.ask(do="run", work="diamonds", count=diamonds)
    single = side.ask(do="run", work="chain", size=hops)
    by_process = {name: used for name, used in many.items() if name not in ("wall", "client")}
    return {
        "wall": many["wall"],
        "cpu": sum(by_process.values()),
        "hop": single["wall"],
        **by_process,
    }


def in_turn(measures: Sequence[Callable[[], Found]], rounds: int) -> list[list[Found]]:
    """Run each side once per round, forwards and backwards by turns.

    A machine that slows down over time then slows all of them down alike.
    """
    figures: list[list[Found]] = [[] for _ in measures]
    for number in range(rounds):
        order = range(len(measures)) if number % 2 == 0 else reversed(range(len(measures)))
        for index in order:
            figures[index].append(measures[index]())
    return figures


def medians(runs: Sequence[Found]) -> Found:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def ratios(
    empty: Sequence[Found], full: Sequence[Found], between: Sequence[str] = BETWEEN
) -> Found:
    """Of each pair, the full one's figure by the empty one's; the median of these."""
    return {
        key: statistics.median(b[key] / a[key] for a, b in zip(empty, full, strict=True))
        for key in between
    }
