"""Screens that show a run: lines for files and pipes, or nothing (`--json`).

`live` has the table for terminals.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TextIO

from penstock.cli.progress import Progress, Row
from penstock.cli.safe_text import clean, counted, one_line
from penstock.engine.states import NodeState

Spans = Sequence[tuple[str, str]]
"""A line for people: pieces of text, each with a style of `styled_text`, which may be empty."""

NAME_WIDTH_MAX = 40


class Screen(Protocol):
    shows_details: bool
    """Whether it shows the messages of failures while the execution runs."""

    def begin(self, progress: Progress) -> None: ...

    def changed(self, row: Row | None) -> None:
        """A node's row has changed, or, for None, the execution."""

    def tick(self) -> None:
        """Time has passed."""

    def end(self) -> None: ...

    def show(self, lines: Iterable[Spans]) -> None: ...

    def notice(self, text: str) -> None:
        """Show something that the user should know at once."""

    def stray(self, text: str) -> None:
        """Show what was printed outside of a handler's call."""

    def restore(self) -> None:
        """Leave the terminal as it was, at once: the process is about to end."""


class SilentScreen:
    """A screen for `--json`, which leaves standard output to the one object."""

    shows_details = False

    def begin(self, progress: Progress) -> None: ...

    def changed(self, row: Row | None) -> None: ...

    def tick(self) -> None: ...

    def end(self) -> None: ...

    def show(self, lines: Iterable[Spans]) -> None: ...

    def notice(self, text: str) -> None: ...

    def stray(self, text: str) -> None:
        print(text, end="", file=sys.__stderr__)

    def restore(self) -> None: ...


class LineScreen:
    """A screen for files, pipes and CI: a line for every change of state."""

    shows_details = True

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.time) -> None:
        self._stream = stream
        self._clock = clock
        self._progress: Progress | None = None
        self._width = 0

    def begin(self, progress: Progress) -> None:
        self._progress = progress
        longest = max(len(one_line(name, NAME_WIDTH_MAX)) for name in progress.rows)
        self._width = max(longest, len("execution"))
        self._write_line(f"{one_line(progress.workflow)}, {counted(len(progress.rows), 'node')}")
        self._write_line(f"execution {progress.execution_id}")

    def changed(self, row: Row | None) -> None:
        progress = self._progress
        if progress is None:
            return

        now = self._clock()
        is_counted = row is not None and row.items is not None
        if row is not None and is_counted:
            has_not_begun = row.state == NodeState.PENDING
            if has_not_begun or row.is_about_to_end:
                return  # its counts come before the line with which it begins or ends
        if row is None:
            at = progress.finished_at or progress.started_at or now
            name = "execution"
            state = progress.state
            note = ""
        else:
            is_open = is_counted and row.state == NodeState.WAITING
            at = now if is_open else row.changed_at or now
            name = one_line(row.name, NAME_WIDTH_MAX)
            state = row.state
            attempt = f"attempt {row.attempt}" if row.attempt > 1 else ""
            note = ", ".join(filter(None, [attempt, row.note(at)]))

        seconds = max(0.0, at - progress.started_at)
        line = f"{seconds:9.3f}s  {name:<{self._width}}  {state:<9}  {note}"
        self._write_line(line.rstrip())

    def tick(self) -> None:
        self._stream.flush()

    def end(self) -> None:
        self._write_line("")

    def show(self, lines: Iterable[Spans]) -> None:
        for spans in lines:
            self._write_line("".join(text for text, _ in spans))
        self._stream.flush()

    def notice(self, text: str) -> None:
        self._write_line(text)
        self._stream.flush()

    def stray(self, text: str) -> None:
        self._stream.write(text)

    def restore(self) -> None:
        self._stream.flush()

    def _write_line(self, text: str) -> None:
        self._stream.write(clean(text).rstrip() + "\n")
