"""Tables: coloured and fitted to the screen on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from penstock.cli.safe_text import one_line

CELL_CHARACTERS_MAX = 200
GAP = "  "


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, whole: Sequence[str] = ("id",)
) -> None:
    """Print a table; columns named in `whole` are never shortened, so they can be copied."""
    # An ASCII terminal shows ? instead of failing.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    texts = [[_cell_text(cell) for cell in row] for row in rows]
    if on_terminal():
        _show_coloured(columns, texts, whole)
    else:
        _show_plain(columns, texts)


def _cell_text(cell: object) -> str:
    if cell is None:
        return ""
    return one_line(str(cell), CELL_CHARACTERS_MAX)


def on_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def _show_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    heads = [name.upper() for name in columns]
    lines = [heads, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(heads))]
    for line in lines:
        cells = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
        print(GAP.join(cells).rstrip())


def _show_coloured(
    columns: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[str]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from penstock.cli.live import STYLES

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, name in enumerate(columns):
        longest = max((len(row[index]) for row in rows), default=0)
        min_width = longest if name in whole or name == "state" else None
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=min_width)

    for row in rows:
        cells = []
        for text in row:
            _, style = STYLES.get(text, ("", ""))
            cells.append(Text(text, style=style))
        table.add_row(*cells)
    Console(highlight=False).print(table)
