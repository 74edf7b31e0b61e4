"""What a guard is: a refusal in the sources, what is left without it, and the tests of which one must go red then."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "penstock"


class Guard(NamedTuple):
    name: str
    file: str
    """Under src/penstock."""
    code: str
    """Stands there once."""
    without: str
    test: str
    """Arguments for pytest."""

    def text(self) -> str:
        return (SOURCES / self.file).read_text(encoding="utf-8")

    def taken_out(self, text: str) -> str:
        return text.replace(self.code, self.without)

    def span(self, text: str) -> tuple[int, int]:
        """What of `text` is another without this guard.

        Where something only comes in between, all of its code.
        """
        before = _common(self.code, self.without)
        after = _common(self.code[before:][::-1], self.without[before:][::-1])
        first = text.index(self.code)
        if before + after == len(self.code):
            return first, first + len(self.code)
        return first + before, first + len(self.code) - after


def _common(one: str, other: str) -> int:
    """With how many characters both begin."""
    pairs = zip(one, other, strict=False)
    return next(
        (number for number, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other))
    )
