"""The live table of nodes on a terminal.

Rich is imported by this module, and so only where there is a terminal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli.progress import ACTIVE, ENDED, Progress, Row, choose_rows
from penstock.cli.safe_text import clean, duration, one_line
from penstock.cli.screens import Spans
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
        console: Console | None = None,
    ) -> None:
        self._console = console or Console(no_color=no_color or None, highlight=False)
        self._clock = clock
        self._size: Callable[[], ConsoleDimensions] = lambda: self._console.size
        self._progress: Progress | None = None
        self._live: Live | None = None
        self._partial = ""
        self._notice = ""

    def open(self, terminal: TextIO) -> None:
        self._console.file = terminal
        # Rich would ask standard output, which leads elsewhere now.
        self._size = lambda: ConsoleDimensions(*os.get_terminal_size(terminal.fileno()))

    def watch(self, progress: Progress) -> None:
        self._progress = progress

    def begin(self, progress: Progress) -> None:
        self.watch(progress)
        self._live = Live(
            get_renderable=self.render,
            console=self._console,
            auto_refresh=False,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)

    def changed(self, row: Row | None) -> None:
        """Wait for the next tick: a node may change many times between two ticks."""

    def tick(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def end(self) -> None:
        if self._live is not None:
            self._notice = ""
            self._live.refresh()
            self._live.stop()
            self._live = None
            self.stray("\n" if self._partial else "")
            self._console.print()

    def show(self, lines: Iterable[Spans]) -> None:
        for spans in lines:
            line = Text.assemble(*((clean(text), style) for text, style in spans))
            indent = len(line.plain) - len(line.plain.lstrip())
            if line:
                padded = Padding(line[indent:], (0, 0, 0, indent), expand=False)
                self._console.print(padded)
            else:
                self._console.print("")

    def notice(self, text: str) -> None:
        self._notice = text
        self.tick()

    def stray(self, text: str) -> None:
        """Print whole lines above the table; the rest waits until its line is complete."""
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._console.print(Text(clean(line)), soft_wrap=True)

    def restore(self) -> None:
        if self._live is not None:
            self._live.stop()
        self._console.show_cursor(show=True)

    def render(self) -> RenderableType:
        progress = self._progress
        if progress is None:
            return Text()
        now = self._clock()
        self._console.size = self._size()
        rows = choose_rows(progress, max(1, self._console.height - CHROME_LINES))

        parts: list[RenderableType] = [self._title(progress, now), Text(), self._table(rows, now)]
        hidden = len(progress.rows) - len(rows)
        if hidden:
            parts.append(Text(f"  and {hidden:,} more", style="dim"))
        parts += [Text(), self._bar(progress, now)]
        return Group(*parts)

    def _title(self, progress: Progress, now: float) -> Text:
        glyph, style = STYLES[progress.state]
        if progress.state == "RUNNING":
            glyph = _spinner(now)
        title = Text.assemble(
            (f"{glyph} ", style), (one_line(progress.workflow, 100), "bold"), "  "
        )
        title.append(progress.execution_id, style="dim")
        if self._notice:
            title.append(f"  {self._notice}", style="yellow")
        return _fitted(title)

    def _table(self, rows: list[Row], now: float) -> Table:
        width = self._console.width
        columns = list(COLUMNS)
        if width < HANDLER_COLUMN_FROM:
            columns.remove("handler")
        lines = [self._cells(row, now) for row in rows]
        widths = _column_widths(columns, lines, width)

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for name in columns:
            justify: JustifyMethod = "right" if name in ("try", "time") else "left"
            head = "" if name == "note" else name
            table.add_column(
                head, width=widths[name], no_wrap=True, overflow="ellipsis", justify=justify
            )

        for cells in lines:
            cells["note"].plain = _middle_out(cells["note"].plain, widths["note"])
            table.add_row(*(cells[name] for name in columns))
        return table

    def _cells(self, row: Row, now: float) -> dict[str, Text]:
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
            tries = f"{row.attempt}/{row.attempts_max}"
        seconds = row.seconds(now)
        took = "" if seconds is None else duration(seconds)
        return {
            "state": Text(f"{glyph} {row.state.lower()}", style=style),
            "node": Text(one_line(row.name), style=name_style),
            "handler": Text(one_line(row.handler), style="dim"),
            "try": Text(tries, style="yellow"),
            "time": Text(took, style="dim"),
            "note": Text(row.note(now), style=note_style),
        }

    def _bar(self, progress: Progress, now: float) -> Table:
        total = len(progress.rows)
        done = progress.done
        failed = progress.state in ("FAILED", "CANCELLED") or progress.has_failures
        style = "red" if failed else "green"
        bar = ProgressBar(
            total=total,
            completed=done,
            width=min(30, max(10, self._console.width // 6)),
            complete_style=style,
            finished_style=style,
        )

        line = Text.assemble(f"{done:,}/{total:,}", (f"  {duration(progress.seconds(now))}", "dim"))
        for state in (NodeState.FAILED, *ACTIVE, NodeState.QUEUED, *ENDED):
            if count := progress.count(state):
                line.append("  ")
                is_harmless = state is NodeState.FAILED and not progress.has_failures
                style = "dim" if is_harmless else STYLES[state][1]
                line.append(f"{count:,} {state.lower()}", style=style)

        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_row(bar, line)
        return grid


def _column_widths(columns: list[str], lines: list[dict[str, Text]], width: int) -> dict[str, int]:
    """Widths of the columns; the note gets what the others leave.

    Rich would narrow all columns alike for a long note.
    """
    width_max = {"node": max(12, width // 3), "handler": 24}
    widths: dict[str, int] = {}
    for name in columns:
        if name != "note":
            longest = max([COLUMNS[name], *(cells[name].cell_len for cells in lines)])
            widths[name] = min(longest, width_max.get(name, width))
    widths["note"] = max(1, width - sum(widths.values()) - 2 * len(columns))
    return widths


def _middle_out(text: str, width: int) -> str:
    """Shorten a message in its middle: its ends say what was tried and what came of it."""
    if cell_len(text) <= width:
        return text
    head = width // 2
    tail = width - width // 2 - 1
    return f"{text[:head]}…{text[len(text) - tail :]}"


def _spinner(now: float) -> str:
    return SPINNER[int(now * FRAMES_A_SECOND) % len(SPINNER)]


def _fitted(text: Text) -> Text:
    text.no_wrap = True
    text.overflow = "ellipsis"
    return text
