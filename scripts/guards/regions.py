"""Refusals of maps and loops: limits, and what comes too late for an item, a round or a region."""

from __future__ import annotations

from scripts.guards.guard import Guard

LIMITS = "tests/engine/test_limits_of_items.py"
LOOPS = "tests/engine/test_loops.py"
MAPS = "tests/engine/test_maps.py"


def _guard(  # noqa: PLR0913, PLR0917 -- what a guard has
    name: str, module: str, at: str, pattern: str, without: str, test: str
) -> Guard:
    return Guard(name, f"engine/{module}.py", at=at, pattern=pattern, without=without, test=test)


GUARDS = [
    _guard(
        "an item whose nodes have all ended has no time limit any more",
        "regions",
        "item_due",
        "not item.unfinished",
        "False",
        LIMITS,
    ),
    _guard(
        "an item that has failed doesn't run out of time",
        "regions",
        "item_due",
        "item.failing",
        "False",
        LIMITS,
    ),
    _guard(
        "the time limit of a map or a loop that has ended has no effect",
        "regions",
        "region_due",
        "region is None",
        "False",
        LIMITS,
    ),
    _guard(
        "the pause of a loop that has ended has no effect",
        "regions",
        "round_due",
        "if region is None: ...",
        "pass",
        LIMITS,
    ),
    _guard(
        "a map or a loop ends once",
        "regions",
        "end_region",
        "_ is not region",
        "False",
        LIMITS,
    ),
    _guard(
        "too many failures stop the other items",
        "regions",
        "end_item",
        "region.has_too_many_failures",
        "False",
        MAPS,
    ),
    _guard(
        "a new owner stops the other items after too many failures",
        "regions",
        "end_region",
        "if region.has_too_many_failures: ...",
        "",
        MAPS,
    ),
    _guard(
        "a map has a limited number of nodes",
        "regions",
        "_check_size",
        "_ > BODY_NODES_MAX",
        "False",
        LIMITS,
    ),
    _guard(
        "an item has a limited size",
        "regions",
        "_check_size",
        "_ > ITEM_BYTES_MAX",
        "False",
        LIMITS,
    ),
    _guard(
        "the output of a map has a limited size",
        "regions",
        "_complete",
        "_ > OUTPUT_BYTES_MAX",
        "False",
        LIMITS,
    ),
    _guard(
        "a new owner opens nothing in a map whose time is up",
        "items",
        "must_stop",
        "region.more.timed_out",
        "False",
        LIMITS,
    ),
    _guard(
        "a new owner opens nothing in a map that was stopped from outside",
        "items",
        "must_stop",
        "is_stopped_from_outside(...)",
        "False",
        "tests/engine/test_against_model.py -k maps",
    ),
    _guard(
        "a new owner knows that the time of an item is up",
        "state",
        "_restore_item",
        "own_run is not None",
        "False",
        LIMITS,
    ),
    _guard(
        "a new owner counts the time of an item from its opening",
        "settling",
        "open_run",
        "item.opened_at is not None",
        "False",
        LIMITS,
    ),
    _guard(
        "a new owner counts the time of an item that it begins",
        "settling",
        "open_run",
        "item.opened_at is None and execution.record.state is ExecutionState.RUNNING",
        "False",
        MAPS,
    ),
    _guard(
        "a new owner looks up the item before a round inside of it begins",
        "loops",
        "fill",
        "not regions.has_values(...)",
        "False",
        LOOPS,
    ),
    _guard(
        "the condition of a loop is decided once per round",
        "loops",
        "_holds",
        "region.decided is not None and ...",
        "False",
        LOOPS,
    ),
    _guard(
        "a signal skips the nodes of items that have ended",
        "on_signal",
        "_waiting_run",
        "not execution.has_number(number)",
        "False",
        "tests/engine/test_signals.py",
    ),
    _guard(
        "what one item fails with stops no node of another",
        "stopping",
        "_drop_ready",
        "base not in bases",
        "False",
        f"{MAPS} tests/engine/test_against_model.py",
    ),
]
