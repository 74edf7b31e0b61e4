"""Spans of a source text, changes to it, and the error of a pattern that doesn't match once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class PatternError(Exception):
    """A pattern matches nothing, or more than once, or what it matches can't be replaced."""


class Span(NamedTuple):
    """In characters."""

    first: int
    end: int

    def overlaps(self, other: Span) -> bool:
        return self.first < other.end and other.first < self.end


class Edit(NamedTuple):
    span: Span
    text: str
    """What stands there afterwards."""


def apply(edits: Iterable[Edit], source: str) -> str:
    for edit in sorted(edits, reverse=True):
        source = source[: edit.span.first] + edit.text + source[edit.span.end :]
    return source


def check_matches(source: str, pattern: str, spans: Sequence[Span]) -> None:
    """Raises unless there is exactly one."""
    if not spans:
        raise PatternError(f"`{pattern}` matches nothing")
    if len(spans) > 1:
        lines = [str(source.count("\n", 0, span.first) + 1) for span in spans]
        raise PatternError(f"`{pattern}` matches {len(spans)} times, in lines {', '.join(lines)}")
