"""Bars on a logarithmic scale, as SVG that reads on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH, LABEL, VALUE, BAR, GAP, TOP = 860, 340, 90, 18, 8, 48
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #24292f }
    .title { font-weight: 600 } .axis { fill: #57606a }
    .bar { fill: #8c959f } .ours { fill: #0a7d6c } .line { stroke: #d0d7de }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .axis { fill: #9198a1 } .bar { fill: #656c76 } .ours { fill: #2fb39c }
      .line { stroke: #3d444d }
    }
  """


class Scale:
    """From the power of ten below the smallest value to the one above the largest."""

    def __init__(self, values: Sequence[float]) -> None:
        # a bit lower, or a smallest value that is itself a power of ten would have a bar without
        # length
        self.low = math.floor(math.log10(min(values) / 1.25))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)

    def length(self, value: float) -> float:
        return (math.log10(value) - self.low) / (self.high - self.low) * (WIDTH - LABEL - VALUE)

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def bars(title: str, subtitle: str, items: Sequence[tuple[str, float, str, bool]]) -> str:
    """Items are a label, a value, its text, and whether it is ours."""
    scale = Scale([value for _, value, _, _ in items])
    bottom = TOP + len(items) * (BAR + GAP)
    parts = [f'<text class="title" x="8" y="18">{escape(title)}</text>']
    parts.append(f'<text class="axis" x="8" y="36">{escape(subtitle)}</text>')
    for tick in scale.ticks:
        at = LABEL + scale.length(tick)
        parts.append(
            f'<line class="line" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 4}" y2="{bottom}"/>'
        )
        parts.append(
            f'<text class="axis" x="{at:.1f}" y="{bottom + 16}" '
            f'text-anchor="middle">{tick:,g}</text>'
        )
    for number, (label, value, text, is_ours) in enumerate(items):
        y, length = TOP + number * (BAR + GAP), scale.length(value)
        kind = "bar ours" if is_ours else "bar"
        parts.append(f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end">{escape(label)}</text>')
        parts.append(
            f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>'
        )
        parts.append(f'<text x="{LABEL + length + 6:.1f}" y="{y + 14}">{escape(text)}</text>')
    body = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 24}" role="img" '
        f'aria-label="{escape(title)}">\n  <style>{STYLE}</style>\n  {body}\n</svg>\n'
    )
