"""Lines over a logarithmic size, as SVG that reads on light and dark pages.

In the look of `peers.chart`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from benchmarks.peers.chart import STYLE

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 300, 60, 230, 52, 40
COLOURS = ("#0a7d6c", "#8c5ab4", "#bf6a02", "#57606a", "#0969da")
STEPS = 5
Line = Sequence[tuple[float, float]]
"""Sizes and values; a size may be 0, which stands left of the smallest other one."""


class Axes:
    def __init__(self, lines: Sequence[Line]) -> None:
        self.sizes = sorted({size for line in lines for size, _ in line})
        exponents = [math.log10(size) for size in self.sizes if size > 0]
        self._low = exponents[0] - (1 if 0 in self.sizes else 0)
        self._span = max(exponents[-1] - self._low, 1e-9)
        self._peak = max(value for line in lines for _, value in line)
        self.step = _round_up(self._peak / STEPS)

    @property
    def top(self) -> float:
        return math.ceil(self._peak / self.step) * self.step

    def x(self, size: float) -> float:
        at = self._low if size <= 0 else math.log10(size)
        return LEFT + (at - self._low) / self._span * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (1 - value / self.top) * (HEIGHT - TOP - BOTTOM)


def _round_up(value: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value)


def lines(title: str, subtitle: str, named: Mapping[str, Line]) -> str:
    """A line for each name; the scale of values begins at 0, so that flat looks flat."""
    axes = Axes(list(named.values()))
    parts = [f'<text class="title" x="8" y="18">{escape(title)}</text>']
    parts.append(f'<text class="axis" x="8" y="36">{escape(subtitle)}</text>')
    for number in range(round(axes.top / axes.step) + 1):
        at = axes.y(number * axes.step)
        parts.append(
            f'<line class="line" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        )
        text = f"{number * axes.step:,g}"
        parts.append(
            f'<text class="axis" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{text}</text>'
        )
    for size in axes.sizes:
        position = f'x="{axes.x(size):.1f}" y="{HEIGHT - BOTTOM + 18}"'
        parts.append(f'<text class="axis" {position} text-anchor="middle">{size:,.0f}</text>')
    for number, (name, line) in enumerate(named.items()):
        parts += _drawn(axes, name, line, COLOURS[number % len(COLOURS)], number)
    body = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">\n  <style>{STYLE}</style>\n  {body}\n</svg>\n'
    )


def _drawn(axes: Axes, name: str, line: Line, colour: str, number: int) -> list[str]:
    points = [(axes.x(size), axes.y(value)) for size, value in line]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    key = TOP + 16 * number
    drawn = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    drawn.append(
        f'<rect x="{WIDTH - RIGHT + 16}" y="{key}" width="10" height="10" rx="2" fill="{colour}"/>'
    )
    drawn.append(f'<text x="{WIDTH - RIGHT + 32}" y="{key + 9}">{escape(name)}</text>')
    return drawn
