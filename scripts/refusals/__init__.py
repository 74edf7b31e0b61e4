"""Finds every refusal by itself, so that none can be without a guard (`scripts.guards`) unnoticed.

Refusals are: every condition in a `.lua` file, every fence in the Python and the SQL of the stores,
the engine and the orchestrator. Transitions that the tables of engine/states.py don't have are let
in one by one by `scripts.guards.tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from scripts.guards.guard import Guard
from scripts.patterns import SOURCES, Span
from scripts.refusals import fences, lua, sql
from scripts.refusals.harmless import Excuse
from scripts.refusals.refusal import Refusal

LAYERS = ("stores", "orchestrator", "engine")
READERS = ("counting", "searching", "reader", "tables", "schema")
"""Whose SQL only looks: what it leaves out, it doesn't refuse. Nor do schemas and migrations."""


def all_refusals() -> Iterator[Refusal]:
    for path in sorted(SOURCES.rglob("*.lua")):
        yield from lua.refusals(*_read(path))
    for path in sorted(SOURCES.rglob("*.sql")):
        if path.stem not in READERS and path.parent.name not in {"versions", "upgrades"}:
            yield from sql.refusals(*_read(path))
    for layer in LAYERS:
        for path in sorted((SOURCES / layer).rglob("*.py")):
            yield from fences.refusals(*_read(path))
            if path.stem not in READERS:
                yield from sql.refusals(*_read(path))


def unguarded(guards: Iterable[Guard]) -> list[Refusal]:
    """Refusals that no guard takes out."""
    spans: dict[str, list[Span]] = {}
    for guard in guards:
        spans.setdefault(guard.file, []).extend(guard.spans(guard.location.text()))
    return [
        refusal
        for refusal in all_refusals()
        if not any(refusal.span.overlaps(span) for span in spans.get(refusal.file, ()))
    ]


def forgotten(guards: Iterable[Guard], excuses: Iterable[Excuse]) -> list[Refusal]:
    """Refusals that have neither a guard nor an excuse."""
    refusals = unguarded(guards)
    excused = [refusal for excuse in excuses for refusal in excused_by(excuse, refusals)]
    return [refusal for refusal in refusals if refusal not in excused]


def excused_by(excuse: Excuse, refusals: Sequence[Refusal]) -> list[Refusal]:
    """The refusals that stand where the excuse says: exactly one, or the excuse is out of date."""
    span = excuse.location.span(excuse.location.text())
    in_file = [refusal for refusal in refusals if refusal.file == excuse.file]
    return [refusal for refusal in in_file if refusal.span.overlaps(span)]


def _read(path: Path) -> tuple[str, str]:
    return path.relative_to(SOURCES).as_posix(), path.read_text(encoding="utf-8")
