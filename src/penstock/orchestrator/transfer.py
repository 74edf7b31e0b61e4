"""What moves between a hot and a cold store that are two (`stores.split`), beside the loop of a partition's owner.

The `Archiver` brings what has finished into the cold store, the `Checkpointer` copies of what runs. Both put their
copies there through a `Carrier`: a cold store that is away makes them wait, and nobody else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from penstock.errors import StoreUnavailable
from penstock.orchestrator.owner import PartitionOwner
from penstock.stores.partial import history_of, record_of
from penstock.stores.split import ColdSide, Copy, Summary, summary_of

log = logging.getLogger("penstock.orchestrator")

AWAY_SECONDS = 1.0
STEP_SECONDS = 0.002


class Carrier:
    def __init__(self, cold: ColdSide, owner: PartitionOwner) -> None:
        self._cold, self._owner, self._lease = cold, owner, owner.lease
        self._is_away = False

    async def put(self, copies: Sequence[Copy]) -> set[str]:
        """Until they are there. Answers the executions that the cold store refuses for what is in them."""
        number = await self._covering()
        while True:
            try:
                refused = await self._put(number, copies)
            except StoreUnavailable as error:
                if not self._is_away:
                    log.warning("partition %d can't be archived, and waits: %s", self._lease.partition, error)
                self._is_away = True
                await asyncio.sleep(AWAY_SECONDS)
            else:
                self._is_away = False
                return refused

    async def _covering(self) -> int:
        """A commit number that the hot store has reached, and with it everything that was read from it until now.

        One that is too low would let a hot store go back behind these copies unnoticed.
        """
        before = self._lease.commit_number
        while not self._owner.is_at_rest and self._lease.commit_number == before:  # noqa: ASYNC110
            await asyncio.sleep(STEP_SECONDS)
        return self._lease.commit_number

    async def _put(self, number: int, copies: Sequence[Copy]) -> set[str]:
        """Those that are refused for their content are found by halves, as for a commit."""
        try:
            await self._cold.put_copies(self._lease.partition, number, copies)
        except StoreUnavailable:
            raise
        except Exception as error:  # one of them can't be written
            await self._blame_content(number, error)
            if len(copies) == 1:
                log.exception("execution %s can't be archived; it stays in the hot store", copies[0].execution_id)
                return {copies[0].execution_id}
            half = len(copies) // 2
            return await self._put(number, copies[:half]) | await self._put(number, copies[half:])
        return set()

    async def _blame_content(self, number: int, error: Exception) -> None:
        """If not even nothing can be written, it isn't the content. Raises `StoreUnavailable` then."""
        try:
            await self._cold.put_copies(self._lease.partition, number, [])
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001
            raise StoreUnavailable(f"the cold store fails: {type(error).__name__}: {error}") from error


def summary_from(changes: Sequence[bytes]) -> Summary | None:
    """Of an execution's changes, the oldest first; None if there is no record among them."""
    record = next((found for change in reversed(changes) if (found := record_of(change)) is not None), None)
    if record is None:
        return None
    lines = next((lines for change in reversed(changes) if (lines := history_of(change))), [])
    return summary_of(record, lines[-1].seq if lines else 0)
