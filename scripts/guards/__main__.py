"""`python -m scripts.guards [words of a guard's name, its file or its tests]`; see --help."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from scripts.guards import GUARDS, LISTED, Guard
from scripts.guards.page import PAGE, page
from scripts.guards.running import Bench, Outcome, bench
from scripts.refusals import forgotten
from scripts.refusals.harmless import HARMLESS


def main() -> int:
    options = _options()
    if options.list:
        PAGE.write_text(page(LISTED), encoding="utf-8")
        return 0
    chosen = [
        guard for guard in GUARDS if options.words in f"{guard.name} {guard.file} {guard.test}"
    ]
    outcomes = _take_out(chosen[options.first - 1 : options.last], options.workers)
    missed = [str(refusal) for refusal in forgotten(GUARDS, HARMLESS)]
    for refusal in missed:
        print(f"WRONG no guard has {refusal}")
    bad = [outcome for outcome in outcomes if outcome.problem]
    print(
        f"{len(outcomes)} guards taken out, {len(bad)} without a red test; "
        f"{len(missed)} refusals without a guard"
    )
    if options.json:
        rows = [
            {**outcome.guard._asdict(), **outcome._asdict(), "guard": outcome.guard.name}
            for outcome in outcomes
        ]
        options.json.write_text(
            json.dumps({"guards": rows, "forgotten": missed}, indent=1), encoding="utf-8"
        )
    return 1 if bad or missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.guards", description=__doc__)
    parser.add_argument(
        "words", nargs="?", default="", help="only guards that have this in name, file or test"
    )
    parser.add_argument("--first", type=int, default=1, help="of those, begin with this one")
    parser.add_argument("--last", type=int, help="and end with this one")
    parser.add_argument(
        "--workers", type=int, default=1, help="how many are taken out at a time (1)"
    )
    parser.add_argument("--json", type=Path, help="write what came of each to this file")
    parser.add_argument("--list", action="store_true", help="only write tests/guards.md again")
    return parser.parse_args()


def _take_out(guards: Iterable[Guard], workers: int) -> list[Outcome]:
    with ExitStack() as stack, ThreadPoolExecutor(workers) as pool:
        free: SimpleQueue[Bench] = SimpleQueue()
        for _ in range(workers):
            free.put(stack.enter_context(bench()))

        def take_out(guard: Guard) -> Outcome:
            free_bench = free.get()
            try:
                return free_bench.take_out(guard)
            finally:
                free.put(free_bench)

        outcomes = []
        for outcome in pool.map(take_out, guards):
            outcomes.append(outcome)
            _print(outcome)
        return _confirmed(free.get(), outcomes)


def _confirmed(idle: Bench, outcomes: list[Outcome]) -> list[Outcome]:
    """A test that fails anyway has shown nothing."""
    red = sorted({outcome.red for outcome in outcomes if outcome.red})
    broken = set(idle.failing(red)) if red else set()
    return [
        _print(outcome._replace(problem=f"{outcome.red} fails anyway"))
        if outcome.red in broken
        else outcome
        for outcome in outcomes
    ]


def _print(outcome: Outcome) -> Outcome:
    verdict = "WRONG" if outcome.problem else "RED  "
    detail = outcome.problem or outcome.red
    print(f"{verdict} {outcome.guard.name}: {detail} ({outcome.seconds:.0f} s)", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
