"""`python -m tests.simulation --seeds 5000` simulates many seeds.

It counts the faults, and prints each violation with its seed. Each seed is run in two worlds: one
store, and a hot and a cold one that are two.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.world import simulate

KINDS = {
    "plain": {},
    "regions": {"regions": True},
    "waits": {"waits": True},
    "both": {"regions": True, "waits": True},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="both",
        help="with maps, loops and retries; with nodes that wait; with both (default)",
    )
    arguments = parser.parse_args()
    faults: Counter[str] = Counter()
    bad = 0
    began = time.monotonic()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for tiered in (False, True):
            violations, happened = simulate(seed, tiered=tiered, **KINDS[arguments.kind])
            faults.update(happened)
            if violations:
                bad += 1
                world = "two stores" if tiered else "one store"
                print(f"seed {seed}, {world}:", *violations[:5], sep="\n  ")  # noqa: T201
    seconds = time.monotonic() - began
    summary = f"{arguments.seeds} seeds in two worlds in {seconds:.0f} s, {bad} with violations"
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(faults.items()))
    print(f"{summary}\n  {counts}")  # noqa: T201
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
