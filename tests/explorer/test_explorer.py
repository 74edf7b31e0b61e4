"""All orders of events within small budgets; `make explore` has larger ones."""

from __future__ import annotations

from array import array

import pytest

from tests.explorer import cases, deciding, judge
from tests.explorer.deciding import decide, intent
from tests.explorer.faults import CANCEL
from tests.explorer.judge import Violation
from tests.explorer.orchestrators import STARTED
from tests.explorer.search import explore, first_on_a_cycle
from tests.explorer.world import Budget, Commit, Entry, Guard, Ledger, Store, World
from tests.sizes import explored, size

BUDGETS = (
    *cases.SINGLE,
    *cases.TWICE,
    *cases.PAIRS,
    Budget(loss=1, failure=1),
    Budget(loss=1, cancel=1),
)


@pytest.mark.parametrize("budget", BUDGETS, ids=cases.name_of)
def test_no_order_of_events_breaks_a_guarantee(budget: Budget) -> None:
    exploration = explore(budget)
    assert not exploration.violation, str(exploration)
    assert exploration.rests, "nothing was proved: it never came to an end"


@explored
@pytest.mark.parametrize("shape", cases.REGIONS)
def test_no_order_of_events_breaks_a_guarantee_with_items_or_a_signal(shape: str) -> None:
    pairs = cases.PAIRS[:: size(short=7, full=1)]
    for budget in (*cases.SINGLE, *pairs, *cases.TWICE[: size(short=0, full=99)]):
        exploration = explore(budget, shape=shape)
        assert not exploration.violation, f"{cases.name_of(budget)}: {exploration}"
        assert exploration.rests, "nothing was proved: it never came to an end"


@pytest.mark.parametrize("guard", Guard, ids=lambda guard: guard.name)
def test_without_a_guard_there_is_a_counterexample(guard: Guard) -> None:
    budget, violation = cases.NEEDS[guard]
    shape = cases.SHAPES.get(guard, deciding.FAN_IN)
    exploration = explore(budget, frozenset({guard}), shape)
    assert exploration.violation.startswith(violation), str(exploration)
    assert exploration.trace


@explored
def test_while_the_store_keeps_its_data_the_commit_number_alone_fences_a_commit() -> None:
    """Why the token's counterexample needs a loss: after one, commit numbers come again."""
    budgets = (
        Budget(pause=1, lost=1),
        Budget(pause=2),
        Budget(lost=2),
        Budget(duplicate=1, pause=1),
    )
    for budget in budgets[: size(short=2, full=4)]:
        assert not explore(budget, frozenset({Guard.TOKEN})).violation


def test_a_counterexample_is_shown_step_by_step() -> None:
    lines = str(explore(Budget(duplicate=1), frozenset({Guard.NUMBER}))).splitlines()
    assert lines[1].endswith("an orchestrator gets the lease")
    assert lines[-1].endswith("is dispatched twice")


def test_steps_that_go_round_in_circles_are_found() -> None:
    assert first_on_a_cycle(4, array("q", [0, 1, 0]), array("q", [1, 2, 3])) is None
    assert first_on_a_cycle(4, array("q", [0, 1, 2, 3]), array("q", [1, 2, 3, 1])) == 1


def test_the_judge_sees_a_join_that_starts_too_early_and_an_attempt_too_many() -> None:
    decision = decide(intent(), (STARTED,))
    world = World(Store((STARTED,)), Budget())
    judge.check_commit(world, Commit(1, 0, 1, *decision))
    for key, said in ((("join", 1, 1), "G3"), (("a", 1, 3), "attempt 3 of 2")):
        with pytest.raises(Violation, match=said):
            judge.check_commit(world, Commit(1, 0, 1, decision.change, (key,), (), decision.after))


def test_the_judge_sees_what_is_recorded_after_the_end_or_beside_the_history_or_twice() -> None:
    begun = Commit(1, 0, 1, *decide(intent(), (STARTED,)))
    ended = Commit(1, 0, 1, *decide(intent(), (STARTED, CANCEL)))
    twice = Ledger(outcomes=((1, ""),))
    for world, commit, said in (
        (World(Store((), execution=ended.after), Budget()), begun, "after the end"),
        (World(Store((), execution=begun.after), Budget()), begun, "doesn't join"),
        (World(Store(()), Budget(), ledger=twice), ended, "has two outcomes"),
    ):
        with pytest.raises(Violation, match=said):
            judge.check_commit(world, commit)


def test_the_judge_sees_what_is_left_over_at_the_end() -> None:
    ended = decide(intent(), (STARTED, CANCEL)).after
    judge.check_rest(World(Store((), execution=ended), Budget()))
    task = Entry(1, ("a", 1, 1))
    for store, said in (
        (Store((), execution=decide(intent(), (STARTED,)).after), "stuck"),
        (Store((), execution=ended, entries=(task,)), "a task is left over"),
        (Store((CANCEL,), execution=ended), "an event is left over"),
    ):
        with pytest.raises(Violation, match=said):
            judge.check_rest(World(store, Budget()))
