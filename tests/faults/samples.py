"""What is measured again and again while something runs for long, and whether it grows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

WARM_UP, WARM_UP_SECONDS = 0.25, 240.0
"""The part of a run that isn't judged, and how long it is at least.

Caches fill, connections are opened, and cycles pile up until the garbage collector runs, which in
Penstock's processes is configured to run seldom.
"""
SAMPLES_MIN = 6
"""Samples that say something about a slope."""

Point = tuple[float, float]
"""When, in seconds, and how much."""


class Trend(NamedTuple):
    name: str
    mean: float
    growth: float
    """From the end of the warm-up to the end, by the line that fits best."""
    bound: float

    @property
    def is_flat(self) -> bool:
        return self.growth <= self.bound

    def __str__(self) -> str:
        verdict = "" if self.is_flat else ": TOO MUCH"
        return (
            f"{self.name}: mean {self.mean:.1f}, growth {self.growth:+.2f} of at most "
            f"{self.bound:g}{verdict}"
        )


def slope(points: Sequence[Point]) -> float:
    """Least squares."""
    middle = sum(at for at, _ in points) / len(points)
    width = sum((at - middle) ** 2 for at, _ in points)
    return sum((at - middle) * value for at, value in points) / width if width else 0.0


@dataclass
class Samples:
    bounds: Mapping[str, float]
    """By what is measured, the first word of a name: how much it may grow over a run."""
    series: defaultdict[str, list[Point]] = field(default_factory=lambda: defaultdict(list))

    def take(self, at: float, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.series[name].append((at, value))

    def trends(self) -> list[Trend]:
        """Of everything that was measured often enough after the warm-up."""
        last = max(at for points in self.series.values() for at, _ in points)
        judged = []
        for name, points in self.series.items():
            warm = [point for point in points if point[0] >= max(WARM_UP * last, WARM_UP_SECONDS)]
            if len(warm) >= SAMPLES_MIN:
                mean = sum(value for _, value in warm) / len(warm)
                growth = slope(warm) * (warm[-1][0] - warm[0][0])
                judged.append(Trend(name, mean, growth, self.bounds[name.partition(" ")[0]]))
        return judged
