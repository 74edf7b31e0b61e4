"""Which tests each of several processes begins with (`pytest -n`).

xdist gives each process an equal part of all tests, in order; who is done takes from the end of the
longest queue. So the long ones would be in one part, and some would be begun last and alone. They
come first in every second part: while one process runs a plant of processes, another has tests that
need little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def deal(long: Sequence[T], short: Sequence[T], processes: int) -> list[T]:
    """Order all tests so that equal shares have about as many long ones at their beginning."""
    hands = max(1, processes // 2)
    count = len(long) + len(short)
    dealt = list[T]()
    begun = 0
    for number in range(processes):
        hand = long[number // 2 :: hands] if number % 2 == 0 and number // 2 < hands else []
        part = (count - len(dealt)) // (processes - number)
        end = begun + max(0, part - len(hand))
        dealt += [*hand, *short[begun:end]]
        begun = end
    return [*dealt, *short[begun:]]
