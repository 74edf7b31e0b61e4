"""`python -m tests.simulation --seeds 5000`: run many seeds.

Faults are counted, and each violation is printed with its seed.

Each is run in two worlds: one store, and a hot and a cold one that are two.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.world import simulate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    faults: Counter[str] = Counter()
    bad = 0
    began = time.monotonic()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for tiered in (False, True):
            problems, happened = simulate(seed, tiered=tiered)
            faults.update(happened)
            if problems:
                bad += 1
                world = "two stores" if tiered else "one store"
                print(f"seed {seed}, {world}:", *problems[:5], sep="\n  ")  # noqa: T201 -- a command's output
    seconds = time.monotonic() - began
    print(f"{arguments.seeds} seeds in two worlds in {seconds:.0f} s, {bad} with violations")  # noqa: T201
    print("  " + ", ".join(f"{name} {count:,}" for name, count in sorted(faults.items())))  # noqa: T201
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
