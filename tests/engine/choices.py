"""Chance, for workflows and stories.

It is drawn by Hypothesis, which shrinks, or from a seed, which goes deeper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


class Choices:
    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below
        """A number from 0 up to, not including, what it is given. 0 is the simplest choice."""

    def any_of(self, *things: Thing) -> Thing:
        return things[self.below(len(things))]

    def one_in(self, n: int) -> bool:
        return self.below(n) == n - 1

    def some_of(self, things: Sequence[Thing], count: int) -> list[Thing]:
        left = list(things)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]
