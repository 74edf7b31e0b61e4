"""What a refusal is: a location in the sources where something is turned away, or left out."""

from __future__ import annotations

from typing import NamedTuple

from scripts.patterns import Span


class Refusal(NamedTuple):
    file: str
    """Under src/penstock."""
    line: int
    text: str
    """Blanks and line breaks as one blank."""
    span: Span

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def refusal(file: str, source: str, span: Span) -> Refusal:
    line = source.count("\n", 0, span.first) + 1
    return Refusal(file, line, " ".join(source[span.first : span.end].split()), span)
