"""Redaction takes the values of secrets out of all that an attempt reports: outputs, errors, logs.

A service that was sent a secret may send it back in another form, and an error may quote a part of
it. So a value is looked for character by character, each of them as it is, in the other case, or as
it looks in a URL, in JSON, in HTML or in Python's `repr`, in any mixture; and besides in base64 (at
each of the three places that it may have between other bytes, so also inside `Basic` credentials)
and in hex. Of a value that was cut, what is left is hidden too.

The first eight characters are found by one regular expression per value, which takes time linear in
the text; only where it matches, the rest is compared. A text without any sign of an escape is
searched as it is, at the speed of `str.find`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Iterator
from functools import lru_cache
from html.entities import codepoint2name
from typing import Any, NamedTuple

HIDDEN = "***"
HIDDEN_CHARACTERS_MIN = 4
"""A shorter value isn't hidden.

It would blank out ordinary words and digits, and the gaps would give it away.
"""
HEAD_CHARACTERS = 8
"""A cut value is hidden from this many characters on; fewer are part of too many words."""
BASE64_CHARACTERS_MIN = 5
STEP_CHARACTERS = 64 * 1024
HEAD_CHARACTERS_MAX = 2048
"""The head of a value is never longer than this, however it is written."""
ESCAPES_MAX = 8
"""Backslashes before one character: JSON in a text in JSON doubles them each time."""

_ESCAPE_SIGNS = ("%", "\\", "&", "+", "\r")
_SHORT_ESCAPES = {
    "\n": "n",
    "\r": "r",
    "\t": "t",
    "\b": "b",
    "\f": "f",
    "\v": "v",
    "\a": "a",
    "\0": "0",
}
_ENTITIES = {**codepoint2name, 39: "apos"}
_BACKSLASHES = rf"\\\\{{0,{ESCAPES_MAX - 1}}}"
_LINE_BREAK = r"(?:\r?\n|\\{1,4}r\\{1,4}n|\\{1,4}n)?"
"""Between two characters: base64 and long lines are often broken into lines."""
_CUT_HERE = re.compile(r"$|\s{0,4}(…|\.\.\.|\[?truncated|\\{1,4}u2026)", re.IGNORECASE)


def redact(value: Any, secrets: Collection[str]) -> Any:
    """A copy of a JSON value in which every secret's value is replaced by `***`.

    That is in texts, keys and numbers. Iterative, because an output may be nested as deep as its
    author likes.
    """
    hidden = tuple(sorted({secret for secret in secrets if len(secret) >= HIDDEN_CHARACTERS_MIN}))
    if not hidden:
        return value
    redactor = _redactor(hidden)
    root: list[Any] = [value]
    stack: list[Any] = [root]
    while stack:
        container = stack.pop()
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for key, item in list(items):
            clean = _copied(item, redactor)
            container[key] = clean
            if isinstance(clean, (dict, list)):
                stack.append(clean)
    return root[0]


def _copied(item: Any, redactor: Redactor) -> Any:
    """A copy of a list or an object, one level deep.

    What is inside is copied when its turn comes.
    """
    if isinstance(item, str):
        return redactor.clean(item)
    if isinstance(item, dict):
        copy = {}
        for key, inner in item.items():
            clean_key = redactor.clean(key) if isinstance(key, str) else key
            copy[clean_key] = inner
        return copy
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        return redactor.clean_number(item)
    return list(item) if isinstance(item, (list, tuple)) else item


class Redactor:
    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._needles: list[Needle] = []
        for secret in secrets:
            self._needles += _needles(secret)
        self._numeric = [secret for secret in secrets if re.fullmatch(r"[+-]?[0-9.]+", secret)]

    def clean(self, text: str) -> str:
        """The text without secrets. Values that overlap vanish as a whole."""
        if len(text) < HIDDEN_CHARACTERS_MIN:
            return text
        searched = Searched(text)
        spans: list[tuple[int, int]] = []
        for needle in self._needles:
            spans += needle.spans(searched)
        if not spans:
            return text

        spans.sort()
        parts: list[str] = []
        end = 0
        for start, stop in spans:
            if start < end:
                end = max(end, stop)
                continue
            parts += [text[end:start], HIDDEN]
            end = stop
        return "".join([*parts, text[end:]])

    def clean_number(self, number: float) -> Any:
        """The number, or `***` if a secret of digits is in it.

        Such a secret comes back as a number when it stood in JSON without quotes.
        """
        if self._numeric and any(secret in str(number) for secret in self._numeric):
            return HIDDEN
        return number


@lru_cache(maxsize=64)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor(secrets)


class Searched:
    """A text, with what is needed to rule a value out quickly."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_escaped = any(sign in text for sign in _ESCAPE_SIGNS)
        self._lowered: str | None = None

    def lacks(self, lowered_head: str) -> bool:
        if self.is_escaped:
            return False
        if self._lowered is None:
            self._lowered = self.text.replace("\n", "").lower()
        return lowered_head not in self._lowered


class Needle(NamedTuple):
    """One form of a secret, looked for from one of its characters on."""

    value: str
    """The secret's form, from that character to its end."""
    head: re.Pattern[str]
    needed: int
    """What matches is hidden if it has so many characters of the value."""
    is_quick: bool
    """Whether it can be ruled out without the regular expression."""
    before: int = 0
    after: int = 0
    """Characters around it that hold a part of it too: base64 doesn't end where a byte does."""

    def spans(self, searched: Searched) -> Iterator[tuple[int, int]]:
        head_length = min(HEAD_CHARACTERS, len(self.value))
        if self.is_quick and searched.lacks(self.value[:head_length].lower()):
            return

        text = searched.text
        position = 0
        while match := self._next(text, position):
            end, count = self._extended(text, match.end(), head_length)
            is_cut = head_length == HEAD_CHARACTERS and _CUT_HERE.match(text, end) is not None
            if count >= self.needed or count == len(self.value) or is_cut:
                yield max(0, match.start() - self.before), min(len(text), end + self.after)
                position = end
            else:
                position = match.start() + 1

    def _next(self, text: str, position: int) -> re.Match[str] | None:
        """Find the next match, in steps.

        A search holds the GIL, and other threads want to go on meanwhile.
        """
        while position < len(text):
            end = position + STEP_CHARACTERS
            if match := self.head.search(text, position, end):
                return match
            position = end - HEAD_CHARACTERS_MAX if end < len(text) else end
        return None

    def _extended(self, text: str, end: int, count: int) -> tuple[int, int]:
        """The end of a match after its head, and how many characters of the value there are."""
        while count < len(self.value):
            match = _next_character(self.value[count]).match(text, end)
            if match is None:
                break
            end = match.end()
            count += 1
        return end, count


def _needles(secret: str) -> Iterator[Needle]:
    yield from _cut_anywhere(secret)
    data = secret.encode("utf-8", "surrogatepass")
    yield _needle(data.hex(), 2 * len(data))
    seen: set[str] = set()
    for offset in range(3):
        plain = b64encode(bytes(offset) + data).decode()
        first = (offset * 8 + 5) // 6
        last = (offset + len(data)) * 8 // 6
        inner = plain[first:last]
        for form in (inner, inner.replace("+", "-").replace("/", "_")):
            if len(form) >= BASE64_CHARACTERS_MIN and form not in seen:
                seen.add(form)
                needle = _needle(form, min(len(form), max(HEAD_CHARACTERS, len(form) // 2)))
                before = 1 if offset else 0
                after = 1 if (offset + len(data)) % 3 else 0
                yield needle._replace(before=before, after=after)


def _cut_anywhere(secret: str) -> Iterator[Needle]:
    """The value itself, and its later parts: a value may be cut off at its beginning."""
    length = len(secret)
    needed = min(length, max(HEAD_CHARACTERS, (length + 1) // 2))
    starts = (0, length // 4, length // 2) if length >= 2 * HEAD_CHARACTERS else (0,)
    for start in starts:
        yield _needle(secret[start:], min(needed, length - start))


def _needle(value: str, needed: int) -> Needle:
    head = value[:HEAD_CHARACTERS]
    pattern = _LINE_BREAK.join(_character(character) for character in head)
    is_quick = head.isascii() and not any(sign in head for sign in (*_ESCAPE_SIGNS, "\n"))
    return Needle(value, re.compile(pattern), needed, is_quick)


@lru_cache(maxsize=4096)
def _next_character(character: str) -> re.Pattern[str]:
    return re.compile(_LINE_BREAK + _character(character))


@lru_cache(maxsize=4096)
def _character(character: str) -> str:
    """A pattern for every way to write this character.

    Each alternative begins with a plain character: then `re` skips quickly over everything that
    none begins with.
    """
    code = ord(character)
    data = character.encode("utf-8", "surrogatepass")
    plain = dict.fromkeys((character, character.lower(), character.upper(), character.swapcase()))
    forms = [re.escape(form) for form in plain]
    forms.append("".join(f"%(?:25){{0,3}}{_hex(byte, 2)}" for byte in data))
    forms += _backslashed(character, data)
    forms.append(rf"&(?:amp;){{0,3}}#0{{0,6}}{code};?")
    forms.append(rf"&(?:amp;){{0,3}}#[xX]0{{0,6}}{_hex(code, 1)};?")
    if code in _ENTITIES:
        forms.append(rf"&(?:amp;){{0,3}}{_ENTITIES[code]};?")
    if character == " ":
        forms.append(r"\+")
    if character == "\n":
        forms.append(r"\r\n")
    return f"(?:{'|'.join(forms)})"


def _backslashed(character: str, data: bytes) -> Iterator[str]:
    code = ord(character)
    yield "".join(f"{_BACKSLASHES}u{_hex(unit, 4)}" for unit in _utf16(character))
    yield "".join(f"{_BACKSLASHES}x{_hex(byte, 2)}" for byte in data)
    # the range where repr() of a text has one byte and UTF-8 two
    if 0x7F < code <= 0xFF:  # noqa: PLR2004
        yield f"{_BACKSLASHES}x{_hex(code, 2)}"
    if code > 0xFFFF:  # noqa: PLR2004 -- outside of what four digits can say
        yield f"{_BACKSLASHES}U{_hex(code, 8)}"
    if character in _SHORT_ESCAPES:
        yield f"{_BACKSLASHES}{_SHORT_ESCAPES[character]}"
    if not character.isalnum():
        yield f"{_BACKSLASHES}{re.escape(character)}"


def _utf16(character: str) -> list[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[index : index + 2], "big") for index in range(0, len(data), 2)]


def _hex(number: int, digits: int) -> str:
    """Hexadecimal digits in either case."""
    text = f"{number:0{digits}x}"
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in text)
