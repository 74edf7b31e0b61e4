"""Finds every refusal by itself, so that none can be without a guard (`scripts.guards`) unnoticed.

Refusals are: every condition in a `.lua` file, every fence in the Python and the SQL of the stores,
the engine and the orchestrator. Transitions that the tables of engine/states.py don't have are let
in one by one by `scripts.guards.tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.guards.guard import SOURCES, Guard
from scripts.refusals import fences, lua, sql
from scripts.refusals.harmless import HARMLESS
from scripts.refusals.refusal import Refusal

LAYERS = ("stores", "orchestrator", "engine")
READERS = ("counting.py", "searching.py", "reader.py")
"""Whose SQL only looks: what it leaves out, it doesn't refuse."""


def found() -> Iterator[Refusal]:
    for path in sorted(SOURCES.rglob("*.lua")):
        yield from lua.refusals(*_read(path))
    for layer in LAYERS:
        for path in sorted((SOURCES / layer).rglob("*.py")):
            yield from fences.refusals(*_read(path))
            if path.name not in READERS:
                yield from sql.refusals(*_read(path))


def unguarded(guards: Iterable[Guard]) -> list[Refusal]:
    """Those that no guard takes out."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for guard in guards:
        spans.setdefault(guard.file, []).append(guard.span(guard.text()))
    return [
        each for each in found() if not any(_meet(each, span) for span in spans.get(each.file, ()))
    ]


def forgotten(guards: Iterable[Guard]) -> list[Refusal]:
    """Those that aren't harmless either.

    What is written there excuses one: the same text a second time is another.
    """
    excused = set[tuple[str, str]]()
    missed: list[Refusal] = []
    for each in unguarded(guards):
        key = (each.file, each.text)
        if key in excused or key not in HARMLESS:
            missed.append(each)
        excused.add(key)
    return missed


def _meet(each: Refusal, span: tuple[int, int]) -> bool:
    return each.first < span[1] and span[0] < each.end


def _read(path: Path) -> tuple[str, str]:
    return path.relative_to(SOURCES).as_posix(), path.read_text(encoding="utf-8")
