"""How tests are dealt to processes: each once, the long ones first in every second part."""

from __future__ import annotations

import pytest

from tests.dealing import deal


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize(("long", "others"), [(110, 7324), (7, 90), (0, 10), (10, 0), (5, 3)])
def test_each_test_is_dealt_once_and_others_stay_in_order(
    processes: int, long: int, others: int
) -> None:
    dealt = deal([-n for n in range(1, long + 1)], range(others), processes)
    assert sorted(dealt) == list(range(-long, others))
    assert [n for n in dealt if n >= 0] == list(range(others))


def test_every_second_of_four_parts_begins_with_half_of_the_long_ones() -> None:
    dealt = deal([-1, -2, -3, -4], range(36), 4)
    assert [dealt[begin : begin + 3] for begin in (0, 10, 20, 30)] == [
        [-1, -3, 0], [8, 9, 10], [-2, -4, 18], [26, 27, 28],
    ]  # fmt: skip
