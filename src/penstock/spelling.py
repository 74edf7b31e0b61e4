"""Which known name was probably meant.

Bounded: the names are a user's, and there may be very many of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

NAME_LENGTH_MAX = 64
"""Longer names aren't compared: nobody mistypes them."""
CANDIDATES_MAX = 1000
COMPARED_MAX = 3
"""So many of those that share the most pairs of letters are compared letter by letter, which is
slow.
"""
NEAR = 0.8
"""How much of a keyword must be like a name, for that name to have been meant."""


def near_miss(word: str, names: Iterable[str], synonyms: Mapping[str, str]) -> str | None:
    """The name that a keyword was surely meant as: by another word for it, or misspelt."""
    return synonyms.get(word) or nearest_name(word, names, cutoff=NEAR)


def nearest_name(word: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name that is nearest to `word`; None if none is near.

    `cutoff` is how much of both names must be alike, from 0 to 1.
    """
    from difflib import SequenceMatcher  # noqa: PLC0415 -- only mistakes pay for it

    if not word or len(word) > NAME_LENGTH_MAX:
        return None

    pairs = _pairs(word)
    likeness: dict[str, float] = {}
    for name in islice(names, CANDIDATES_MAX):
        if _can_be_near(word, name, cutoff):
            name_pairs = _pairs(name)
            likeness[name] = len(pairs & name_pairs) / (len(pairs) + len(name_pairs))

    nearest = None
    best = cutoff
    candidates = sorted(likeness, key=likeness.__getitem__, reverse=True)
    for name in candidates[:COMPARED_MAX]:
        ratio = SequenceMatcher(None, name, word).ratio()
        if ratio >= best and (nearest is None or ratio > best):
            nearest = name
            best = ratio
    return nearest


def _can_be_near(word: str, name: str, cutoff: float) -> bool:
    """By their lengths alone."""
    if len(name) > NAME_LENGTH_MAX:
        return False
    shorter = min(len(word), len(name))
    return 2 * shorter >= cutoff * (len(word) + len(name))


def _pairs(name: str) -> set[str]:
    around = f"\0{name.lower()}\0"
    return {around[i : i + 2] for i in range(len(around) - 1)}
