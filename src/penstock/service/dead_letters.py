"""Dead letters: nodes that used up their attempts. Retrying one is retrying its execution."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from penstock.errors import Conflict, NotFound, PenstockError
from penstock.service.problems import problem_of
from penstock.service.retries import Retries, RetryPlan
from penstock.stores.base import Stores
from penstock.stores.records import DeadLetterRow, DeadLetterSearch
from penstock.views.retries import RetriedLetters


class Retried:
    """What became of the dead letters of one execution."""

    def __init__(self, retry_of: str, dead_letters: list[int]) -> None:
        self.retry_of = retry_of
        self.dead_letters = dead_letters
        self.execution_id: str | None = None
        self.plan: RetryPlan | None = None
        self.error: PenstockError | None = None

    def view(self) -> RetriedLetters:
        """What users see of the retry, or of the error that prevented it."""
        view = RetriedLetters(retry_of=self.retry_of, letters=self.dead_letters)
        if self.plan is not None:
            view.execution_id = self.execution_id
            view.version = self.plan.version
            view.keeps = self.plan.reused
            view.runs = self.plan.runs
        if self.error is not None:
            view.error = problem_of(self.error)
        return view


class DeadLetters:
    """Lists, retries and drops dead letters."""

    def __init__(self, stores: Stores, retries: Retries) -> None:
        self._cold = stores.cold
        self._now = stores.hot.now
        self._retries = retries

    async def page(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        return await self._cold.dead_letters.dead_letters(search)

    async def get(self, dead_letter_id: int) -> DeadLetterRow:
        row = await self._cold.dead_letters.dead_letter(dead_letter_id)
        if row is None:
            raise NotFound(f"there is no dead letter {dead_letter_id}")
        return row

    async def get_undropped(self, dead_letter_id: int) -> DeadLetterRow:
        """A dead letter as users see it: one that was dropped is only in the list."""
        row = await self.get(dead_letter_id)
        if row.closed == "dropped":
            raise NotFound(
                f"the dead letter {dead_letter_id} was dropped;"
                " the list with closed=true still has it"
            )
        return row

    async def select(
        self, search: DeadLetterSearch, ids: Iterable[int] | None = None
    ) -> list[DeadLetterRow]:
        """The dead letters with these ids, or else those that match the search."""
        if ids is None:
            return await self.page(search)
        return [await self.get(dead_letter_id) for dead_letter_id in ids]

    async def drop(self, dead_letter_id: int) -> None:
        await self.get(dead_letter_id)
        if not await self._cold.dead_letters.close_dead_letters(
            [dead_letter_id], "dropped", self._now()
        ):
            raise Conflict(f"the dead letter {dead_letter_id} is closed already")

    async def drop_many(self, ids: Collection[int]) -> int:
        """Drop dead letters; answers how many of them were open."""
        return await self._cold.dead_letters.close_dead_letters(ids, "dropped", self._now())

    async def retry(self, dead_letter_id: int, *, preview: bool = False) -> Retried:
        row = await self.get(dead_letter_id)
        if row.closed is not None:
            retry = f"; it went on as execution {row.retried_as}" if row.retried_as else ""
            raise Conflict(f"the dead letter {dead_letter_id} was {row.closed} already{retry}")

        retried = await self._retry(row.dead_letter.execution_id, [dead_letter_id], preview=preview)
        if retried.error is not None:
            raise retried.error
        return retried

    async def retry_many(
        self, rows: Iterable[DeadLetterRow], *, preview: bool = False
    ) -> list[Retried]:
        """Retry dead letters: one retry per execution, whatever the number of its dead letters.

        An execution that can't be retried has an `error`.
        """
        by_execution: dict[str, list[int]] = {}
        for row in rows:
            if row.closed is None:
                by_execution.setdefault(row.dead_letter.execution_id, []).append(row.id)

        return [
            await self._retry(execution_id, dead_letters, preview=preview)
            for execution_id, dead_letters in by_execution.items()
        ]

    async def _retry(self, execution_id: str, dead_letters: list[int], *, preview: bool) -> Retried:
        retried = Retried(execution_id, dead_letters)
        try:
            if preview:
                retried.plan = await self._retries.preview(execution_id)
            else:
                retried.execution_id, retried.plan = await self._retries.retry(execution_id)
        except PenstockError as error:
            retried.error = error
        return retried
