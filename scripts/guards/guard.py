"""What a guard is: a refusal, what is left without it, and the tests of which one must go red.

    Guard(
        "a report of another attempt has no effect",
        "engine/on_task.py",
        at="current_run",
        pattern="event.attempt != _",
        without="False",
        test="tests/engine/test_guards.py",
    )

`scripts.patterns` says what a pattern may be.
"""

from __future__ import annotations

from typing import NamedTuple

from scripts.patterns import Edit, Location, Span, apply


class Guard(NamedTuple):
    name: str
    file: str
    """Under src/penstock."""
    at: str
    """The function, or the SQL constant. Empty: module level, or all of a Lua script."""
    pattern: str
    """Matches there exactly once."""
    without: str
    """What is left of it. Empty: nothing."""
    test: str
    """Arguments for pytest."""

    @property
    def location(self) -> Location:
        return Location(self.file, self.at, self.pattern)

    def taken_out(self, source: str) -> str:
        return apply(self._edits(source), source)

    def spans(self, source: str) -> list[Span]:
        """What changes without this guard; of what is only added to, all of it."""
        spans = [edit.span for edit in self._edits(source)]
        return [span if span.first < span.end else self.location.span(source) for span in spans]

    def _edits(self, source: str) -> list[Edit]:
        return self.location.edits(source, self.without)
