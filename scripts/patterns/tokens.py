"""Patterns that are compared word by word: blanks, line breaks and comments don't matter.

- `_` is any expression: words with their brackets, up to the next comma, comparison or keyword
- `...` is anything, with its brackets in pairs

A pattern neither begins nor ends with one of them. What is to be left is compared with the pattern,
and only the words between what both begin with and what both end with are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from scripts.patterns.source import Edit, PatternError, Span, check_matches

_OPENING, _CLOSING = "([{", ")]}"


class Token(NamedTuple):
    text: str
    span: Span


Match = list[Sequence[Token]]
"""For each word of a pattern the tokens that it stands for."""


class Language(NamedTuple):
    token: re.Pattern[str]
    """Matches a token as its group `token`, or what stands between tokens without that group."""
    separators: AbstractSet[str]
    """What no expression goes beyond."""

    def tokens(self, source: str, first: int = 0, end: int | None = None) -> list[Token]:
        texts = self.token.finditer(source, first, len(source) if end is None else end)
        return [Token(text["token"], Span(*text.span())) for text in texts if text["token"]]

    def find(self, source: str, code: Sequence[Sequence[Token]], pattern: str) -> Span:
        """`code` is where the pattern may match: within one of these runs of tokens."""
        return _whole(self._match(source, code, pattern))

    def edits(
        self,
        source: str,
        code: Sequence[Sequence[Token]],
        pattern: str,
        without: str,
    ) -> list[Edit]:
        match = self._match(source, code, pattern)
        wanted = [token.text for token in self.tokens(pattern)]
        left = self.tokens(without)
        left_words = [token.text for token in left]
        before = _common(wanted, left_words)
        after = _common(wanted[before:][::-1], left_words[before:][::-1])
        changed = match[before : len(wanted) - after]
        added = left[before : len(left) - after]
        if any(token.text in {"_", "..."} for token in added):
            raise PatternError(f"`{without}` doesn't say what `_` or `...` is there")
        text = without[added[0].span.first : added[-1].span.end] if added else ""
        if not changed:
            first = match[before][0].span.first
            return [Edit(Span(first, first), f"{text} ")]
        return [Edit(_whole(changed), text)]

    def _match(self, source: str, code: Sequence[Sequence[Token]], pattern: str) -> Match:
        wanted = [token.text for token in self.tokens(pattern)]
        if {wanted[0], wanted[-1]} & {"_", "..."}:
            raise PatternError(f"`{pattern}` begins or ends with a wildcard")
        matches = []
        for tokens in code:
            for first, token in enumerate(tokens):
                if token.text == wanted[0]:
                    match = self._match_here(wanted, tokens[first:])
                    matches += [match] if match is not None else []
        check_matches(source, pattern, [_whole(match) for match in matches])
        return matches[0]

    def _match_here(self, wanted: Sequence[str], tokens: Sequence[Token]) -> Match | None:
        if not wanted:
            return []
        for count in self._counts(wanted[0], tokens):
            rest = self._match_here(wanted[1:], tokens[count:])
            if rest is not None:
                return [tokens[:count], *rest]
        return None

    def _counts(self, word: str, tokens: Sequence[Token]) -> Iterator[int]:
        """How many tokens a word of the pattern may stand for, the fewest first."""
        if word not in {"_", "..."}:
            if tokens and tokens[0].text == word:
                yield 1
            return
        if word == "...":
            yield 0
        depth = 0
        for number, token in enumerate(tokens, start=1):
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if depth < 0 or (word == "_" and depth == 0 and token.text in self.separators):
                return
            if depth == 0:
                yield number


def _whole(match: Match) -> Span:
    tokens = [token for run in match for token in run]
    return Span(tokens[0].span.first, tokens[-1].span.end)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """With how many words both begin."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count
