"""Fences in SQL: conditions that tell an older write from a newer one, rows that stay, and locks.

Our statements have their keywords in capitals, which Python has none of: so they are found in a
module's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scripts.patterns import Span
from scripts.refusals.refusal import Refusal, refusal

_COLUMN = r"\b(?:generation|revision|commit_number|mark|state|phase|closed|revoked_at)\b"
_END = r"\b(?:AND|OR|THEN|WHERE|SET|ORDER|LIMIT|GROUP|RETURNING|ON|UNION|SELECT|JOIN)\b|\"|$"
_CLAUSE = re.compile(rf"\b(?:WHERE|AND|OR|ON|WHEN)\b (?P<refusal>.*?(?={_END}))", re.MULTILINE)
_SAME = re.compile(r"(?P<refusal>ON CONFLICT DO NOTHING|FOR UPDATE|NOT EXISTS|OR IGNORE)")
_COMPARES = re.compile(rf"{_COLUMN}[^=<>]*(?:<|=|>|\bIN\b|\bIS\b)")


def refusals(file: str, source: str) -> Iterator[Refusal]:
    for clause in _CLAUSE.finditer(source):
        if _COMPARES.search(clause["refusal"]):
            yield refusal(file, source, Span(*clause.span("refusal")))
    for same in _SAME.finditer(source):
        yield refusal(file, source, Span(*same.span("refusal")))
