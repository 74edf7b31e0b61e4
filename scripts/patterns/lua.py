"""Patterns of Lua: code that is compared with the tokens of a script, or of a function in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scripts.patterns.source import Edit, PatternError, Span
from scripts.patterns.tokens import Language, Token

LUA = Language(
    re.compile(
        r"""
        \s+ | --\[\[.*?\]\] | --[^\n]*
        | (?P<token>
            '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*"
            | [A-Za-z_]\w* | 0x[0-9a-fA-F]+ | \d+(?:\.\d+)?
            | \.\.\. | \.\. | == | ~= | <= | >= | .
        )
        """,
        re.VERBOSE | re.DOTALL,
    ),
    {
        *("and", "or", "if", "then", "elseif", "else", "end", "for", "in", "while", "do", "repeat"),
        *("until", "return", "local", "function", "break", ",", ";", "="),
        *("==", "~=", "<", ">", "<=", ">="),
    },
)
_OPENS_BLOCK = {"function", "if", "do", "repeat"}
_CLOSES_BLOCK = {"end", "until"}


def find(source: str, at: str, pattern: str) -> Span:
    return LUA.find(source, [_tokens(source, at)], pattern)


def edits(source: str, at: str, pattern: str, without: str) -> list[Edit]:
    return LUA.edits(source, [_tokens(source, at)], pattern, without)


def _tokens(source: str, at: str) -> Sequence[Token]:
    """Those of the function, or of the whole script."""
    tokens = LUA.tokens(source)
    if not at:
        return tokens
    head = ["function", *(token.text for token in LUA.tokens(at)), "("]
    for first in range(len(tokens)):
        if [token.text for token in tokens[first : first + len(head)]] == head:
            return tokens[first : _end_of_block(tokens, first)]
    raise PatternError(f"there is no function {at}")


def _end_of_block(tokens: Sequence[Token], first: int) -> int:
    depth = 0
    for number in range(first, len(tokens)):
        depth += (tokens[number].text in _OPENS_BLOCK) - (tokens[number].text in _CLOSES_BLOCK)
        if depth == 0:
            return number + 1
    raise PatternError(f"`{tokens[first].text}` has no end")
