"""Tables: coloured and fitted to the screen on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from shutil import get_terminal_size

from penstock.cli.safe_text import one_line

CELL_CHARACTERS_MAX = 200
GAP = "  "
COLUMN_WIDTH_MIN = 4


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
    from penstock.cli.live import STYLES
    from penstock.cli.styled_text import StyledText, wants_color

    color = wants_color(no_color=False)
    widths = _fitted_widths(columns, rows, whole, get_terminal_size().columns)
    heads = [StyledText([(name, "dim")]) for name in columns]
    cells = [[StyledText([(text, STYLES.get(text, ("", ""))[1])]) for text in row] for row in rows]
    for line in [heads, *cells]:
        padded = [cell.padded(width) for cell, width in zip(line, widths, strict=True)]
        print(GAP.join(cell.rendered(color=color) for cell in padded).rstrip())


def _fitted_widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[str], width: int
) -> list[int]:
    """Widths of the columns on a screen of a width: the widest ones give way first."""
    from penstock.cli.styled_text import cell_width

    widths = [
        max(cell_width(text) for text in (name, *(row[index] for row in rows)))
        for index, name in enumerate(columns)
    ]
    shortened = [
        index for index, name in enumerate(columns) if name not in whole and name != "state"
    ]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while excess > 0 and shortened:
        widest = max(shortened, key=widths.__getitem__)
        if widths[widest] <= COLUMN_WIDTH_MIN:
            break
        widths[widest] -= 1
        excess -= 1
    return widths
