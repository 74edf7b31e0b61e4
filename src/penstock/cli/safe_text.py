"""Text from data made safe for a terminal: it can't move the cursor or change colours."""

from __future__ import annotations

import json
import re
from typing import Any

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    # titles, links, clipboard
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
)
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_BIDI}]")
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_IN_JSON = re.compile(rf"[\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDI}]")


def clean(text: str) -> str:
    """Text without escape sequences and control characters; tabs and line ends stay."""
    text = _SEQUENCES.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    return _HIDDEN.sub("", text)


def one_line(text: str, limit: int = 200) -> str:
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON in which everything that a terminal could act on is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def duration(seconds: float) -> str:
    if seconds < 0.001:  # noqa: PLR2004 -- a millisecond
        return "<1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004 -- a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
