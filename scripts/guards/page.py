"""tests/guards.md: the list for readers, written from the one for the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scripts.guards.guard import Guard
from scripts.patterns import ROOT

PAGE = ROOT / "tests" / "guards.md"
HEAD = """\
# Guards

A guard is a refusal that a guarantee hangs on. `make guards` takes each out of a copy of the
sources and shows the test that goes red; it fails if all stay green. `scripts/refusals` finds
refusals by itself: in every `.lua` file, in the tables of `engine/states.py` and in the fences of
the stores, the engine and the orchestrator. A refusal that no guard has, and that isn't listed
there with the reason why it is none, fails `tests/tidy`.

Beside these, every transition that isn't in a table of `engine/states.py` is let in, one at a time;
`tests/engine/test_states.py` goes red each time. Written by `python -m scripts.guards --list`.

| guard | where | goes red |
|---|---|---|
"""


def page(guards: Sequence[Guard]) -> str:
    return HEAD + "".join(
        f"| {guard.name} | `{guard.file}` | {_tests(guard)} |\n" for guard in guards
    )


def _tests(guard: Guard) -> str:
    return ", ".join(f"`{name}`" for name in re.findall(r"tests/\S+", guard.test))
