"""Styled text on a terminal: how wide it is, how it is cut and wrapped, and its colours."""

import io
import os
import sys
import threading

import pytest

from penstock.cli import tables
from penstock.cli.live import CURSOR_UP, ERASE_LINE, LiveScreen
from penstock.cli.styled_text import StyledText, cell_width, cut, wants_color
from tests.cli.commands import visible


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("", 0), ("é", 1), ("e\u0301", 1), ("日本", 4), ("…✓━", 3)]
)
def test_the_width_of_a_text_is_in_columns(text: str, width: int):
    assert cell_width(text) == width


@pytest.mark.parametrize(
    ("width", "shown"), [(6, "日本語"), (5, "日本…"), (4, "日…"), (2, "…"), (0, "")]
)
def test_a_text_is_cut_to_columns(width: int, shown: str):
    assert cut("日本語", width) == shown


LINE = StyledText([("state ", "bold red"), ("a long note", "")])


@pytest.mark.parametrize("width", range(1, 20))
def test_a_line_is_never_wider_than_asked(width: int):
    fitted = LINE.fitted(width)
    assert fitted.width <= width
    assert fitted.plain == (LINE.plain if width >= LINE.width else f"{LINE.plain[: width - 1]}…")
    assert LINE.padded(width).width == width
    assert all(part.width <= width for part in LINE.wrapped(width))


def test_a_cell_is_filled_up_on_either_side():
    cell = StyledText([("7", "dim")])
    assert cell.padded(3).plain == "7  "
    assert cell.padded(3, to_the_right=True).plain == "  7"


def test_a_long_line_is_broken_between_words_and_keeps_its_indent_and_styles():
    line = StyledText([("  → ", "dim"), ("one two three", "bold")])
    parts = list(line.wrapped(10))
    assert [part.plain for part in parts] == ["  → one", "  two", "  three"]
    assert parts[2].rendered(color=True) == "  \x1b[1mthree\x1b[0m"


def test_a_word_that_is_too_long_is_broken():
    parts = [part.plain for part in StyledText([("abcdefgh ij", "")]).wrapped(3)]
    assert parts == ["abc", "def", "gh", "ij"]


def test_without_colours_the_emphasis_stays():
    assert LINE.rendered(color=True) == "\x1b[1;31mstate \x1b[0ma long note"
    assert LINE.rendered(color=False) == "\x1b[1mstate \x1b[0ma long note"


def test_no_color_in_the_environment_counts_as_the_flag(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_color(no_color=False)
    assert not wants_color(no_color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(no_color=False)


def test_a_table_on_a_terminal_narrows_its_widest_columns_and_no_ids(
    monkeypatch: pytest.MonkeyPatch,
):
    size = os.terminal_size((30, 24))
    monkeypatch.setattr(tables, "on_terminal", lambda: True)
    monkeypatch.setattr(tables, "get_terminal_size", lambda: size)
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    tables.show_table(["id", "state", "note"], [["0190-4711", "FAILED", "no route to the harbour"]])
    stream.seek(0)
    head, row = stream.read().splitlines()
    assert visible(head) == "id         state   note"
    assert visible(row) == "0190-4711  FAILED  no route t…"
    assert "\x1b[1;31mFAILED" in row


class Screen:
    """A live screen on a stream of its own."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.live = LiveScreen(size=lambda: os.terminal_size((40, 10)))
        self.live.open(self.stream)

    def new_output(self) -> str:
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        return text


def test_text_of_other_writers_comes_in_whole_lines():
    screen = Screen()
    screen.live.stray("half")
    assert screen.new_output() == ""
    writer = threading.Thread(target=screen.live.stray, args=(" a line\nnext",))
    writer.start()
    writer.join()
    assert screen.new_output() == "half a line\n"


def test_nothing_is_erased_where_no_table_was_drawn():
    screen = Screen()
    screen.live.show([[("done", "bold")]])
    screen.live.restore()
    output = screen.new_output()
    assert "done" in output
    assert ERASE_LINE not in output
    assert CURSOR_UP not in output
