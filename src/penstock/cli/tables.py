"""Tables: coloured and fitted to the screen on a terminal, aligned columns of plain text elsewhere."""

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
    """Columns named in `whole` are never shortened: what is copied from them must be complete."""
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # an ASCII terminal shows ? instead of failing
    texts = [
        [one_line("" if cell is None else str(cell), CELL_CHARACTERS_MAX) for cell in row]
        for row in rows
    ]
    if on_terminal():
        _show_coloured(columns, texts, whole)
    else:
        _show_plain(columns, texts)


def on_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def _show_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    heads = [name.upper() for name in columns]
    widths = [max(len(line[index]) for line in (heads, *rows)) for index in range(len(heads))]
    for line in (heads, *rows):
        print(
            GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )


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
        table.add_row(
            *(Text(text, style=STYLES[text][1] if text in STYLES else "") for text in row)
        )
    Console(highlight=False).print(table)
