"""What a refusal is: a place in the sources where something is turned away, or left out."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    file: str
    """Under src/penstock."""
    line: int
    text: str
    """Blanks and line breaks as one blank."""
    first: int
    end: int
    """Where in the file it stands, in characters."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def refusal(file: str, source: str, first: int, end: int) -> Refusal:
    return Refusal(
        file, source.count("\n", 0, first) + 1, " ".join(source[first:end].split()), first, end
    )
