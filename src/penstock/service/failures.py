"""Failures of nodes: a search over the dead letters, open and closed.

Every node that fails for good leaves a dead letter. They are read from the newest on, at most
`SCANNED_MAX` of them for one page; the cursor continues after the last one that was read.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import structs

from penstock.engine.commands import DeadLetter
from penstock.stores.cold import DeadLetters
from penstock.stores.records import DeadLetterRow, DeadLetterSearch

SCANNED_MAX = 20_000
BATCH = 500


class FailureSearch(msgspec.Struct, kw_only=True):
    """What to look for among failures."""

    workflow: str | None = None
    node_id: str | None = None
    handler: str | None = None
    category: str | None = None
    text: str | None = None
    """Part of the error's message, in upper or lower case."""
    since: float | None = None
    until: float | None = None
    before: int | None = None
    """Only dead letters with a smaller id."""
    limit: int = 50


class FailurePage(NamedTuple):
    """A page of failures."""

    rows: list[DeadLetterRow]
    next_before: int | None
    """Where the next page begins; None: there is none."""


class Failures:
    """Searches dead letters for failures."""

    def __init__(self, dead_letters: DeadLetters) -> None:
        self._dead_letters = dead_letters

    async def page(self, search: FailureSearch) -> FailurePage:
        """A page of failures, the newest first."""
        matches: list[DeadLetterRow] = []
        dead_letter_search = DeadLetterSearch(
            workflow=search.workflow,
            handler=search.handler,
            category=search.category,
            closed=True,
            before=search.before,
            limit=BATCH,
        )
        for _ in range(0, SCANNED_MAX, BATCH):
            rows = await self._dead_letters.dead_letters(dead_letter_search)
            for row in rows:
                if search.since is not None and row.dead_letter.at < search.since:
                    return FailurePage(matches, None)  # all further rows are older
                if _fits(row.dead_letter, search):
                    matches.append(row)
                if len(matches) == search.limit:
                    return FailurePage(matches, row.id)

            if len(rows) < BATCH:
                return FailurePage(matches, None)
            dead_letter_search = structs.replace(dead_letter_search, before=rows[-1].id)
        return FailurePage(matches, dead_letter_search.before)


def _fits(dead_letter: DeadLetter, search: FailureSearch) -> bool:
    if search.node_id is not None and dead_letter.node_id != search.node_id:
        return False
    if search.until is not None and dead_letter.at >= search.until:
        return False
    return search.text is None or search.text.lower() in _message(dead_letter).lower()


def _message(dead_letter: DeadLetter) -> str:
    return dead_letter.attempts[-1].error.message if dead_letter.attempts else ""
