"""Text with styles, as it fits on a terminal: widths, cutting, wrapping, colours."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Self

ELLIPSIS = "…"
RESET = "\x1b[0m"
EMPHASIS = {"bold": "1", "dim": "2"}
COLORS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
_WIDE = ("W", "F")
_WITHOUT_WIDTH = ("Mn", "Me", "Cf")


def wants_color(*, no_color: bool) -> bool:
    """Whether colours are wanted: NO_COLOR in the environment says no too."""
    return not no_color and not os.environ.get("NO_COLOR")


def cell_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in _WITHOUT_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def cut(text: str, width: int) -> str:
    """The text, or as much of it as fits, with an ellipsis at its end."""
    if cell_width(text) <= width:
        return text
    return _start_of(text, width - 1) + ELLIPSIS if width > 0 else ""


def _start_of(text: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += _character_width(character)
        if taken > width:
            return text[:index]
    return text


class Span(NamedTuple):
    """A piece of text in one style: words of `EMPHASIS` and `COLORS`, or nothing."""

    text: str
    style: str = ""


class StyledText:
    """A line: pieces of text, each with a style."""

    def __init__(self, spans: Iterable[tuple[str, str]] = ()) -> None:
        self.spans = [Span(text, style) for text, style in spans if text]

    @property
    def plain(self) -> str:
        return "".join(span.text for span in self.spans)

    @property
    def width(self) -> int:
        return sum(cell_width(span.text) for span in self.spans)

    def append(self, text: str, style: str = "") -> None:
        if text:
            self.spans.append(Span(text, style))

    def fitted(self, width: int) -> Self:
        """The line cut to a width."""
        if self.width <= width:
            return self
        shorter = type(self)()
        left = width
        for text, style in self.spans:
            if cell_width(text) >= left:
                # one that fits exactly is cut too: there is more behind it
                shorter.append(_start_of(text, left - 1) + ELLIPSIS, style)
                break
            shorter.append(text, style)
            left -= cell_width(text)
        return shorter

    def padded(self, width: int, *, to_the_right: bool = False) -> Self:
        """The line cut or filled up to a width."""
        fitted = self.fitted(width)
        blank = " " * (width - fitted.width)
        if not blank:
            return fitted
        spans = [(blank, ""), *fitted.spans] if to_the_right else [*fitted.spans, (blank, "")]
        return type(self)(spans)

    def wrapped(self, width: int) -> Iterator[StyledText]:
        """Lines of at most this width, broken between words, and indented as this one is."""
        plain = self.plain
        indent = len(plain) - len(plain.lstrip(" "))
        if self.width <= width or indent >= width:
            yield self
            return
        characters = [(character, style) for text, style in self.spans for character in text]
        del characters[:indent]
        while characters:
            length = _line_length([character for character, _ in characters], width - indent)
            yield StyledText([(" " * indent, ""), *_joined(characters[:length])])
            del characters[:length]
            while characters and characters[0][0] == " ":
                del characters[0]

    def rendered(self, *, color: bool) -> str:
        return "".join(_rendered(text, _codes(style, color=color)) for text, style in self.spans)


def _joined(characters: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Characters of one style in a row as one piece."""
    for style, group in groupby(characters, key=itemgetter(1)):
        yield "".join(character for character, _ in group), style


def _line_length(characters: list[str], width: int) -> int:
    """How many characters a line takes: whole words, unless the first is too long."""
    taken = 0
    end_of_word = 0
    for index, character in enumerate(characters):
        if character == " ":
            end_of_word = index
        taken += _character_width(character)
        if taken > width:
            return end_of_word or max(1, index)
    return len(characters)


def _codes(style: str, *, color: bool) -> str:
    words = style.split()
    codes = [EMPHASIS[word] for word in words if word in EMPHASIS]
    if color:
        codes += [COLORS[word] for word in words if word in COLORS]
    return ";".join(codes)


def _rendered(text: str, codes: str) -> str:
    return f"\x1b[{codes}m{text}{RESET}" if codes else text
