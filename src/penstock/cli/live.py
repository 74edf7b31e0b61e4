"""The live table of nodes on a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from penstock.cli.progress import ACTIVE, ENDED, Progress, Row, choose_rows
from penstock.cli.safe_text import clean, duration, one_line
from penstock.cli.screens import Spans
from penstock.cli.styled_text import ELLIPSIS, StyledText, cell_width, cut, wants_color
from penstock.engine.states import NodeState

CHROME_LINES = 7
"""Lines for title, head of the table, counts, bar, and space between them."""
HANDLER_COLUMN_FROM = 100
"""The width of a terminal that has room for the handler's name."""

STYLES = {
    "PENDING": ("·", "dim"),
    "QUEUED": ("○", "blue"),
    "RUNNING": ("●", "cyan"),
    "RETRYING": ("↻", "yellow"),
    "WAITING": ("◷", "cyan"),
    "COMPLETED": ("✓", "green"),
    "FAILED": ("✗", "bold red"),
    "SKIPPED": ("–", "dim"),
    "CANCELLED": ("■", "magenta"),
    "PAUSED": ("‖", "yellow"),
}
COLUMNS = {"state": 11, "node": 4, "handler": 7, "try": 3, "time": 8, "note": 0}
"""The minimal width of each column, so that the table doesn't jump when a value comes."""
GAP = 2
"""Columns between two cells."""
RIGHT_ALIGNED = ("try", "time")
BAR_COLUMNS_MIN, BAR_COLUMNS_MAX = 10, 30
DEFAULT_SIZE = os.terminal_size((80, 24))
"""Of a terminal that doesn't say how large it is."""
HIDE_CURSOR = "\x1b[?25l"
SHOW_CURSOR = "\x1b[?25h"
ERASE_LINE = "\x1b[2K"
CURSOR_UP = "\x1b[1A"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_A_SECOND = 10


class LiveScreen:
    """A table of the nodes with a progress bar below, redrawn in place."""

    shows_details = True

    def __init__(
        self,
        *,
        no_color: bool = False,
        clock: Callable[[], float] = time.time,
        size: Callable[[], os.terminal_size] | None = None,
    ) -> None:
        self._color = wants_color(no_color=no_color)
        self._clock = clock
        self._terminal: TextIO = sys.stdout
        self._given_size = size
        self._progress: Progress | None = None
        self._is_live = False
        self._drawn_lines = 0
        self._partial = ""
        self._notice = ""
        # Text of other writers comes from a thread.
        self._writing = threading.RLock()

    def open(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def watch(self, progress: Progress) -> None:
        self._progress = progress

    def begin(self, progress: Progress) -> None:
        self.watch(progress)
        self._is_live = True
        self._write(HIDE_CURSOR)
        self.tick()

    def changed(self, row: Row | None) -> None:
        """Wait for the next tick: a node may change many times between two ticks."""

    def tick(self) -> None:
        with self._writing:
            if self._is_live:
                self._write(self._erased() + self._drawn())

    def end(self) -> None:
        with self._writing:
            if self._is_live:
                self._notice = ""
                self._stop()
                self.stray("\n" if self._partial else "")
                self._write("\n")

    def show(self, lines: Iterable[Spans]) -> None:
        width = self._size().columns
        texts: list[str] = []
        for spans in lines:
            line = StyledText((clean(text), style) for text, style in spans)
            texts += [part.rendered(color=self._color) for part in line.wrapped(width)]
        self._print(texts)

    def notice(self, text: str) -> None:
        self._notice = text
        self.tick()

    def stray(self, text: str) -> None:
        """Print whole lines above the table; the rest waits until its line is complete."""
        with self._writing:
            *lines, self._partial = (self._partial + text).split("\n")
            self._print([clean(line) for line in lines])

    def restore(self) -> None:
        with self._writing:
            if self._is_live:
                self._stop()
            self._write(SHOW_CURSOR)

    def render(self) -> list[StyledText]:
        """The lines of the table as it is now; none is wider than the terminal."""
        progress = self._progress
        if progress is None:
            return []
        now = self._clock()
        size = self._size()
        rows = choose_rows(progress, max(1, size.lines - CHROME_LINES))

        lines = [self._title(progress, now), StyledText(), *self._table(rows, now, size.columns)]
        hidden = len(progress.rows) - len(rows)
        if hidden:
            lines.append(StyledText([(f"  and {hidden:,} more", "dim")]))
        lines += [StyledText(), _bar(progress, now, size.columns)]
        return [line.fitted(size.columns) for line in lines[: size.lines]]

    def _stop(self) -> None:
        """Draw a last time, and leave the table where it is."""
        self.tick()
        self._is_live = False
        self._drawn_lines = 0
        self._write(f"\n{SHOW_CURSOR}")

    def _print(self, lines: list[str]) -> None:
        """Print lines, above the table if there is one."""
        if not lines:
            return
        with self._writing:
            table = self._erased() if self._is_live else ""
            text = "".join(f"{line}\n" for line in lines)
            self._write(table + text + (self._drawn() if self._is_live else ""))

    def _erased(self) -> str:
        """What takes the table away, and the cursor to where its first line was."""
        if not self._drawn_lines:
            return ""
        text = f"\r{ERASE_LINE}" + f"{CURSOR_UP}{ERASE_LINE}" * (self._drawn_lines - 1)
        self._drawn_lines = 0
        return text

    def _drawn(self) -> str:
        lines = self.render()
        self._drawn_lines = len(lines)
        return "\n".join(line.rendered(color=self._color) for line in lines)

    def _write(self, text: str) -> None:
        self._terminal.write(text)
        self._terminal.flush()

    def _size(self) -> os.terminal_size:
        if self._given_size is not None:
            return self._given_size()
        try:
            size = os.get_terminal_size(self._terminal.fileno())
        except OSError:  # the terminal is gone
            return DEFAULT_SIZE
        return size if size.columns and size.lines else DEFAULT_SIZE

    def _title(self, progress: Progress, now: float) -> StyledText:
        glyph, style = STYLES[progress.state]
        if progress.state == "RUNNING":
            glyph = _spinner(now)
        title = StyledText([(f"{glyph} ", style), (one_line(progress.workflow, 100), "bold")])
        title.append("  ")
        title.append(progress.execution_id, "dim")
        if self._notice:
            title.append(f"  {self._notice}", "yellow")
        return title

    def _table(self, rows: list[Row], now: float, width: int) -> list[StyledText]:
        columns = list(COLUMNS)
        if width < HANDLER_COLUMN_FROM:
            columns.remove("handler")
        lines = [_cells(row, now) for row in rows]
        widths = _column_widths(columns, lines, width)
        for cells in lines:
            note, style = cells["note"]
            cells["note"] = _middle_out(note, widths["note"]), style

        heads = {name: ("" if name == "note" else name, "dim") for name in columns}
        return [_joined(cells, columns, widths) for cells in [heads, *lines]]


Cell = tuple[str, str]
"""A text and its style."""


def _cells(row: Row, now: float) -> dict[str, Cell]:
    glyph, style = STYLES[row.state]
    if row.state == NodeState.RUNNING:
        glyph = _spinner(now)
    if row.failed_harmlessly:
        style = "dim"
    is_quiet = row.failed_harmlessly or row.state in (NodeState.PENDING, NodeState.SKIPPED)
    name_style = "dim" if is_quiet else ""
    note_style = style if row.state in (NodeState.FAILED, NodeState.RETRYING) else "dim"

    tries = ""
    if row.attempt > 1 or row.state == NodeState.RETRYING:
        tries = f"{row.attempt}/{row.attempts_max}" if row.attempts_max else f"{row.attempt}"
    seconds = row.seconds(now)
    took = "" if seconds is None else duration(seconds)
    return {
        "state": (f"{glyph} {row.state.lower()}", style),
        "node": (one_line(row.name), name_style),
        "handler": (one_line(row.handler), "dim"),
        "try": (tries, "yellow"),
        "time": (took, "dim"),
        "note": (row.note(now), note_style),
    }


def _joined(cells: dict[str, Cell], columns: list[str], widths: dict[str, int]) -> StyledText:
    line = StyledText()
    for name in columns:
        cell = StyledText([cells[name]])
        padded = cell.padded(widths[name], to_the_right=name in RIGHT_ALIGNED)
        line.spans += padded.spans
        line.append(" " * GAP)
    return line


def _bar(progress: Progress, now: float, width: int) -> StyledText:
    total = len(progress.rows)
    done = progress.done
    failed = progress.state in ("FAILED", "CANCELLED") or progress.has_failures
    columns = min(BAR_COLUMNS_MAX, max(BAR_COLUMNS_MIN, width // 6))
    full = columns * done // total if total else columns

    line = StyledText([("━" * full, "red" if failed else "green"), (" " * (columns - full), "")])
    line.append(f"  {done:,}/{total:,}")
    line.append(f"  {duration(progress.seconds(now))}", "dim")
    for state in (NodeState.FAILED, *ACTIVE, NodeState.QUEUED, *ENDED):
        if count := progress.count(state):
            line.append("  ")
            is_harmless = state is NodeState.FAILED and not progress.has_failures
            style = "dim" if is_harmless else STYLES[state][1]
            line.append(f"{count:,} {state.lower()}", style)
    return line


def _column_widths(columns: list[str], lines: list[dict[str, Cell]], width: int) -> dict[str, int]:
    """Widths of the columns; the note gets what the others leave."""
    width_max = {"node": max(12, width // 3), "handler": 24}
    widths: dict[str, int] = {}
    for name in columns:
        if name != "note":
            longest = max([COLUMNS[name], *(cell_width(cells[name][0]) for cells in lines)])
            widths[name] = min(longest, width_max.get(name, width))
    widths["note"] = max(1, width - sum(widths.values()) - GAP * len(columns))
    return widths


def _middle_out(text: str, width: int) -> str:
    """Shorten a message in its middle: its ends say what was tried and what came of it."""
    if cell_width(text) <= width:
        return text
    head = width // 2
    tail = width - width // 2 - 1
    return cut(f"{text[:head]}{ELLIPSIS}{text[len(text) - tail :]}", width)


def _spinner(now: float) -> str:
    return SPINNER[int(now * FRAMES_A_SECOND) % len(SPINNER)]
