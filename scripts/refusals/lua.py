"""Refusals in a Lua script: parts of conditions, what an expression lets through, each `error`.

A script is read by its words, not by a grammar: ours are short, and have no strings with words like
`then` in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scripts.patterns import Span
from scripts.refusals.refusal import Refusal, refusal

_COMMENT = re.compile(r"--[^\n]*")
_CONDITION = re.compile(r"\b(?:if|elseif|while)\b(?P<refusal>.*?)\b(?:then|do)\b", re.DOTALL)
_VALUE = re.compile(r"(?:=|\breturn\b|\bin\b ipairs\()(?P<refusal>[^=\n]*\b(?:and|not)\b[^\n]*)")
_ERROR = re.compile(r"(?P<refusal>(?<![\w.])error\([^\n]*\))")
_PART = re.compile(r"\b(?:and|or)\b|[()]")


def refusals(file: str, source: str) -> Iterator[Refusal]:
    code = _COMMENT.sub(lambda comment: " " * len(comment[0]), source)
    for condition in _CONDITION.finditer(code):
        for span in _parts(code, *condition.span("refusal")):
            yield refusal(file, source, span)
    rest = _CONDITION.sub(lambda condition: " " * len(condition[0]), code)
    for other in (*_VALUE.finditer(rest), *_ERROR.finditer(rest)):
        yield refusal(file, source, _trimmed(code, *other.span("refusal")))


def _parts(code: str, first: int, end: int) -> Iterator[Span]:
    """The condition, divided at each `and` and `or` that isn't in parentheses."""
    depth, start = 0, first
    for word in _PART.finditer(code, first, end):
        depth += {"(": 1, ")": -1}.get(word[0], 0)
        if depth == 0 and word[0] in {"and", "or"}:
            yield _trimmed(code, start, word.start())
            start = word.end()
    yield _trimmed(code, start, end)


def _trimmed(code: str, first: int, end: int) -> Span:
    text = code[first:end]
    return Span(first + len(text) - len(text.lstrip()), first + len(text.rstrip()))
