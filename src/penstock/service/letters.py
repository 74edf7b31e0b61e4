"""Dead letters: nodes that used up their attempts. Retrying one is retrying its execution."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from penstock.errors import Conflict, NotFound, PenstockError
from penstock.orchestrator.view import error_view, time_text
from penstock.service.executions import attempts_view
from penstock.service.retries import Retries, RetryPlan
from penstock.stores.base import Stores
from penstock.stores.records import LetterRow, LetterSearch


class Retried:
    """What became of the letters of one execution."""

    def __init__(self, retry_of: str, letters: list[int]) -> None:
        self.retry_of, self.letters = retry_of, letters
        self.execution_id: str | None = None
        self.plan: RetryPlan | None = None
        self.error: PenstockError | None = None


class Letters:
    def __init__(self, stores: Stores, retries: Retries) -> None:
        self._cold, self._now, self._retries = stores.cold, stores.hot.now, retries

    async def page(self, search: LetterSearch) -> list[LetterRow]:
        return await self._cold.letters(search)

    async def get(self, letter_id: int) -> LetterRow:
        row = await self._cold.letter(letter_id)
        if row is None:
            raise NotFound(f"there is no dead letter {letter_id}")
        return row

    async def drop(self, letter_id: int) -> None:
        await self.get(letter_id)
        if not await self._cold.close_letters([letter_id], "dropped", self._now()):
            raise Conflict(f"the dead letter {letter_id} is closed already")

    async def drop_many(self, ids: Collection[int]) -> int:
        """How many of them were open."""
        return await self._cold.close_letters(ids, "dropped", self._now())

    async def retry(self, letter_id: int, *, preview: bool = False) -> Retried:
        row = await self.get(letter_id)
        if row.closed is not None:
            again = f"; it went on as execution {row.retried_as}" if row.retried_as else ""
            raise Conflict(f"the dead letter {letter_id} was {row.closed} already{again}")
        retried = await self._retry(row.letter.execution_id, [letter_id], preview=preview)
        if retried.error is not None:
            raise retried.error
        return retried

    async def retry_many(
        self, rows: Iterable[LetterRow], *, preview: bool = False
    ) -> list[Retried]:
        """One retry per execution, whatever the number of its letters.

        What can't be retried says why.
        """
        by_execution: dict[str, list[int]] = {}
        for row in rows:
            if row.closed is None:
                by_execution.setdefault(row.letter.execution_id, []).append(row.id)
        return [
            await self._retry(execution_id, letters, preview=preview)
            for execution_id, letters in by_execution.items()
        ]

    async def _retry(self, execution_id: str, letters: list[int], *, preview: bool) -> Retried:
        retried = Retried(execution_id, letters)
        try:
            if preview:
                retried.plan = await self._retries.preview(execution_id)
                return retried
            retried.execution_id, retried.plan = await self._retries.retry(execution_id)
        except PenstockError as error:
            retried.error = error
        return retried


def letter_view(row: LetterRow) -> dict[str, Any]:
    letter = row.letter
    last = letter.attempts[-1].error if letter.attempts else None
    return {
        "id": row.id,
        "execution_id": letter.execution_id,
        "workflow": row.workflow,
        "version": row.version,
        "node_id": letter.node_id,
        "handler": letter.handler,
        "at": time_text(letter.at),
        "category": last.category if last else None,
        "error": error_view(last),
        "attempts": attempts_view(letter.attempts),
        "attempts_dropped": letter.attempts_dropped,
        "closed": row.closed,
        "closed_at": time_text(row.closed_at),
        "retried_as": row.retried_as,
    }
