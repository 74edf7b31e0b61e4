"""A few hundred seeds in every test run; `make simulate` runs thousands."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.world import simulate

SEEDS_PER_TEST = 50


@pytest.mark.parametrize("first", range(0, 400, SEEDS_PER_TEST))
def test_no_seed_breaks_a_guarantee(first: int) -> None:
    faults: Counter[str] = Counter()
    for seed in range(first, first + SEEDS_PER_TEST):
        found, happened = simulate(seed)
        faults.update(happened)
        assert not found, f"seed {seed} (python -m tests.simulation --seeds 1 --first {seed}): {found[:5]}"
    for fault in ("kill", "pause", "lost", "late", "refused", "duplicate", "fenced", "attempts"):
        assert faults[fault] > 0, f"nothing was proved: {fault} never happened"


@pytest.mark.parametrize("seed", [747, 1089, 1261, 1877, 2739, 2801, 4491])
def test_seeds_that_once_found_something_find_it_no_more(seed: int) -> None:
    """A task given to a worker that was already declared dead; two owners that waited for one inbox."""
    assert simulate(seed)[0] == []


def test_the_same_seed_gives_the_same_run() -> None:
    assert simulate(7) == simulate(7)


def test_without_faults_every_execution_ends_without_a_fenced_commit() -> None:
    for seed in range(20):
        found, happened = simulate(seed, rate=0.0)
        assert not found
        assert happened["lost"] == 0
