"""Some seeds in every test run, more in `make explore`; `make simulate` runs thousands."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.world import simulate
from tests.sizes import explored, size

SEEDS_PER_TEST = size(short=30, full=50)
TIERED_SEEDS_PER_TEST = size(short=15, full=25)
REGIONS_SEEDS = size(short=15, full=25)
WAITS_SEEDS = size(short=15, full=25)
REGIONS_AND_WAITS_SEEDS = size(short=40, full=60)
"""Seed 36 is the first one whose retry reuses items."""
COMMAND = "python -m tests.simulation --seeds 1"
EVERYWHERE = ("kill", "pause", "lost", "late", "refused", "duplicate", "fenced", "attempts")
TIERED = ("loss", "rollback", "away", "archived", "checkpointed", "rebuilt")


def _look_for_violations(
    first: int, seeds: int, *, tiered: bool, waits: bool = False
) -> Counter[str]:
    """What happened."""
    faults: Counter[str] = Counter()
    kind = "waits" if waits else "plain"
    for seed in range(first, first + seeds):
        violations, happened = simulate(seed, tiered=tiered, waits=waits)
        faults.update(happened)
        assert not violations, (
            f"seed {seed} ({COMMAND} --first {seed} --kind {kind}): {violations[:5]}"
        )
    return faults


@explored
@pytest.mark.parametrize("first", [0, SEEDS_PER_TEST])
def test_no_seed_breaks_a_guarantee(first: int) -> None:
    faults = _look_for_violations(first, SEEDS_PER_TEST, tiered=False)
    for fault in EVERYWHERE:
        assert faults[fault] > 0, f"nothing was proved: {fault} never happened"


@explored
@pytest.mark.parametrize("first", [0, TIERED_SEEDS_PER_TEST])
def test_no_seed_breaks_a_guarantee_where_the_hot_store_loses_its_data_or_goes_back_in_time(
    first: int,
) -> None:
    faults = _look_for_violations(first, TIERED_SEEDS_PER_TEST, tiered=True)
    for fault in (*EVERYWHERE, *TIERED):
        assert faults[fault] > 0, f"nothing was proved: {fault} never happened"


@explored
@pytest.mark.parametrize("tiered", [False, True])
def test_no_seed_breaks_a_guarantee_with_maps_and_loops(tiered: bool) -> None:  # noqa: FBT001
    happened: Counter[str] = Counter()
    for seed in range(REGIONS_SEEDS):
        violations, faults = simulate(seed, tiered=tiered, regions=True)
        happened.update(faults)
        command = f"{COMMAND} --first {seed} --kind regions"
        assert not violations, f"seed {seed} ({command}): {violations[:5]}"
    for fault in EVERYWHERE:
        assert happened[fault] > 0, f"nothing was proved: {fault} never happened"


@explored
@pytest.mark.parametrize("tiered", [False, True])
def test_no_seed_loses_a_signal_or_lets_two_nodes_take_it(tiered: bool) -> None:  # noqa: FBT001
    """Nodes wait for times, signals and decisions: each execution ends, so none was lost."""
    faults = _look_for_violations(0, WAITS_SEEDS, tiered=tiered, waits=True)
    for fault in ("signal", "kill", "lost", "duplicate"):
        assert faults[fault] > 0, f"nothing was proved: {fault} never happened"


@explored
@pytest.mark.parametrize("tiered", [False, True])
def test_no_seed_breaks_a_guarantee_with_waits_in_maps_and_loops_and_with_retries(
    tiered: bool,  # noqa: FBT001
) -> None:
    happened: Counter[str] = Counter()
    for seed in range(REGIONS_AND_WAITS_SEEDS):
        violations, faults = simulate(seed, tiered=tiered, regions=True, waits=True)
        happened.update(faults)
        command = f"{COMMAND} --first {seed} --kind both"
        assert not violations, f"seed {seed} ({command}): {violations[:5]}"
    for fault in (*EVERYWHERE, "signal", "retry", "reused items"):
        assert happened[fault] > 0, f"nothing was proved: {fault} never happened"


@pytest.mark.parametrize("seed", [747, 1089, 1261, 1877, 2739, 2801, 4491])
def test_seeds_that_once_found_something_find_it_no_more(seed: int) -> None:
    """A task of a worker that was already declared dead; two owners that waited for one inbox."""
    assert simulate(seed)[0] == []


@pytest.mark.parametrize("tiered", [False, True])
def test_the_same_seed_gives_the_same_run(tiered: bool) -> None:  # noqa: FBT001
    assert simulate(7, tiered=tiered) == simulate(7, tiered=tiered)


@pytest.mark.parametrize("tiered", [False, True])
def test_without_faults_every_execution_ends_without_a_fenced_commit(tiered: bool) -> None:  # noqa: FBT001
    for seed in range(10):
        violations, happened = simulate(seed, rate=0.0, tiered=tiered)
        assert not violations
        assert happened["lost"] == happened["loss"] == 0
