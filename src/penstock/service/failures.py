"""Which nodes failed, when and with which error: a search over the dead letters, open and closed.

Every node that fails for good leaves one. They are read from the newest on, and no more of them
than `SCANNED_MAX` for one page: the cursor goes on behind the last one that was looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from penstock.engine.commands import DeadLetter
from penstock.orchestrator.view import time_text
from penstock.stores.cold import DeadLetters
from penstock.stores.records import LetterRow, LetterSearch

SCANNED_MAX = 20_000
BATCH = 500


class FailureSearch(msgspec.Struct, kw_only=True):
    workflow: str | None = None
    node_id: str | None = None
    handler: str | None = None
    category: str | None = None
    text: str | None = None
    """Part of the error's message, in any case of letters."""
    since: float | None = None
    until: float | None = None
    before: int | None = None
    """Only letters with a smaller id."""
    limit: int = 50


class FailurePage(NamedTuple):
    rows: list[LetterRow]
    next_before: int | None
    """Where the next page begins; None: there is none."""


class Failures:
    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    async def page(self, search: FailureSearch) -> FailurePage:
        found: list[LetterRow] = []
        letters = LetterSearch(
            workflow=search.workflow,
            handler=search.handler,
            category=search.category,
            closed=True,
            before=search.before,
            limit=BATCH,
        )
        for _ in range(0, SCANNED_MAX, BATCH):
            rows = await self._letters.letters(letters)
            for row in rows:
                if search.since is not None and row.letter.at < search.since:
                    return FailurePage(found, None)  # those behind it are older
                if _fits(row.letter, search):
                    found.append(row)
                if len(found) == search.limit:
                    return FailurePage(found, row.id)
            if len(rows) < BATCH:
                return FailurePage(found, None)
            letters = structs.replace(letters, before=rows[-1].id)
        return FailurePage(found, letters.before)


def _fits(letter: DeadLetter, search: FailureSearch) -> bool:
    if search.node_id is not None and letter.node_id != search.node_id:
        return False
    if search.until is not None and letter.at >= search.until:
        return False
    return search.text is None or search.text.lower() in _message(letter).lower()


def _message(letter: DeadLetter) -> str:
    return letter.attempts[-1].error.message if letter.attempts else ""


def failure_view(row: LetterRow) -> dict[str, Any]:
    letter = row.letter
    last = letter.attempts[-1].error if letter.attempts else None
    return {
        "dead_letter_id": row.id,
        "execution_id": letter.execution_id,
        "workflow": row.workflow,
        "version": row.version,
        "node_id": letter.node_id,
        "handler": letter.handler,
        "at": time_text(letter.at),
        "category": last.category if last else None,
        "message": last.message if last else None,
        "attempts": len(letter.attempts) + letter.attempts_dropped,
        "retried_as": row.retried_as,
    }
