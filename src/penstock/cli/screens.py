"""Where a run is shown: a live table on a terminal, lines elsewhere, or nowhere (`--json`)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TextIO

from penstock.cli.progress import Progress, Row
from penstock.cli.safe_text import clean, counted, one_line

Spans = Sequence[tuple[str, str]]
"""A line for people: pieces of text, each with its style (as rich has them; may be empty)."""

NAME_WIDTH_MAX = 40


class Screen(Protocol):
    shows_details: bool
    """Whether messages of failures are of use while it runs."""

    def begin(self, progress: Progress) -> None: ...

    def changed(self, row: Row | None) -> None:
        """A node's row has changed, or, for None, the execution."""

    def tick(self) -> None:
        """Time has passed."""

    def end(self) -> None: ...

    def show(self, lines: Iterable[Spans]) -> None: ...

    def notice(self, text: str) -> None:
        """Something that the user should know now, while it runs."""

    def stray(self, text: str) -> None:
        """What was printed by code that isn't inside a handler's call."""

    def restore(self) -> None:
        """Leave the terminal as it was, at once: the process is about to end."""


class SilentScreen:
    """For `--json`: standard output is kept for the one object."""

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
    """A line for every change of state: for files, pipes and CI."""

    shows_details = True

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.time) -> None:
        self._stream, self._clock = stream, clock
        self._progress: Progress | None = None
        self._width = 0

    def begin(self, progress: Progress) -> None:
        self._progress = progress
        longest = max(len(one_line(name, NAME_WIDTH_MAX)) for name in progress.rows)
        self._width = max(longest, len("execution"))
        self._line(f"{one_line(progress.workflow)}, {counted(len(progress.rows), 'node')}")
        self._line(f"execution {progress.execution_id}")

    def changed(self, row: Row | None) -> None:
        progress = self._progress
        if progress is None:
            return
        now = self._clock()
        at = (row.changed_at if row else progress.finished_at or progress.started_at) or now
        name = one_line(row.name, NAME_WIDTH_MAX) if row else "execution"
        state = row.state if row else progress.state
        notes = [f"attempt {row.attempt}" if row.attempt > 1 else "", row.note(at)] if row else []
        note = ", ".join(note for note in notes if note)
        line = (
            f"{max(0.0, at - progress.started_at):9.3f}s  {name:<{self._width}}  {state:<9}  {note}"
        )
        self._line(line.rstrip())

    def tick(self) -> None:
        self._stream.flush()

    def end(self) -> None:
        self._line("")

    def show(self, lines: Iterable[Spans]) -> None:
        for spans in lines:
            self._line("".join(text for text, _ in spans))
        self._stream.flush()

    def notice(self, text: str) -> None:
        self._line(text)
        self._stream.flush()

    def stray(self, text: str) -> None:
        self._stream.write(text)

    def restore(self) -> None:
        self._stream.flush()

    def _line(self, text: str) -> None:
        self._stream.write(clean(text).rstrip() + "\n")
