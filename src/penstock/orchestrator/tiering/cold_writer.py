"""The cold writer writes copies of executions into the cold store.

The archiver and the checkpointer use it. A cold store that is away makes these two wait, and nobody
else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Sequence

from penstock.engine.events import SignalReceived
from penstock.errors import Fenced, StoreError, StoreUnavailable
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.tiering.portions import Portions
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.plan_cache import PlanCache
from penstock.stores.tiering import (
    ColdStoreWentBack,
    Copied,
    Copy,
    Tiering,
    Written,
    last_record,
    summary_from,
)
from penstock.stores.waits import WaitChange
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.orchestrator")

STEP_SECONDS = 0.002
TRIES = 5
"""Tries for a copy that the cold store doesn't take while it takes others.

So many failures in a row are no coincidence.
"""


class ColdWriter:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        tiering: Tiering,
        owner: PartitionOwner,
        plans: PlanCache,
        metrics: Metrics,
        *,
        timing: OrchestratorTiming,
        portions: Portions,
    ) -> None:
        self._hot = tiering.hot
        self._cold = tiering.cold
        self._owner = owner
        self._lease = owner.lease
        self._plans = plans
        self._metrics = metrics
        self._away_seconds = timing.cold_away_seconds
        self._portion_bytes = portions.bytes_max
        self._is_away = False

    async def check(self) -> None:
        """Raise `ColdStoreWentBack` if the cold store was put back to an older copy.

        Waits for a cold store that is away.
        """
        await self._put_portion(await self._covering(), [])

    async def put(self, copies: Sequence[Copy]) -> set[str]:
        """Put copies into the cold store; returns when they are there.

        Returns the executions that the cold store refuses for what is in them.
        """
        number = await self._covering()
        refused: set[str] = set()
        for portion in _portions(copies, self._portion_bytes):
            refused |= await self._put_portion(number, portion)
        return refused

    async def put_waits(self, changes: Sequence[WaitChange]) -> list[SignalReceived]:
        """List open waits in the cold store. Waits for one that is away."""
        while True:
            try:
                return await self._cold.put_waits(changes)
            except StoreUnavailable:
                await asyncio.sleep(self._away_seconds)

    async def _put_portion(self, number: int, copies: Sequence[Copy]) -> set[str]:
        while True:
            try:
                refused = await self._put(number, copies)
            except StoreUnavailable as error:
                if not self._is_away:
                    log.warning(
                        "partition %d can't be archived, and waits: %s",
                        self._lease.partition,
                        error,
                    )
                self._is_away = True
                await asyncio.sleep(self._away_seconds)
            else:
                self._is_away = False
                await self._acknowledge(copies, refused)
                if number > self._lease.cold_number:
                    await self._hot.acknowledge_commit(self._lease, number)
                    self._lease.cold_number = number
                return refused

    async def _acknowledge(self, copies: Sequence[Copy], refused: Collection[str]) -> None:
        """Note in the hot store how far executions that go on were copied."""
        copied: dict[str, Copied] = {}
        for copy in copies:
            is_new = copy.changes and copy.execution_id not in refused
            if is_new and copy.summary is not None and not copy.summary.has_ended:
                copied[copy.execution_id] = Copied(copy.until, copy.summary)
        if copied:
            await self._hot.acknowledge_copies(self._lease, copied)

    async def _covering(self) -> int:
        """A commit number that covers everything that was read from the hot store until now.

        One that is too low would let a hot store go back behind these copies unnoticed.
        """
        before = self._lease.commit_number
        while not self._owner.is_at_rest and self._lease.commit_number == before:  # noqa: ASYNC110
            await asyncio.sleep(STEP_SECONDS)
        return self._lease.commit_number

    async def _put(self, number: int, copies: Sequence[Copy]) -> set[str]:
        """Put copies. Those that are refused for content or size are found by halving.

        Returns the executions that were refused.
        """
        for tried in range(1, TRIES + 1):
            try:
                return await self._put_all(number, copies)
            except Exception as error:  # one of them can't be written, or all of them are too much
                await self._check_cold_store_writes(number, error)
                if len(copies) > 1:
                    break
                if tried == TRIES or not isinstance(error, StoreUnavailable):
                    log.exception(
                        "execution %s can't be archived; it stays in the hot store",
                        copies[0].execution_id,
                    )
                    return {copies[0].execution_id}
                await asyncio.sleep(self._away_seconds)
        half = len(copies) // 2
        return await self._put(number, copies[:half]) | await self._put(number, copies[half:])

    async def _put_all(self, number: int, copies: Sequence[Copy]) -> set[str]:
        """Put copies, with all changes where an execution has no row or earlier ones are missing.

        Returns the executions of which the hot store has nothing to write a row from.
        """
        written = await self._store(number, copies)
        rewritten = [*written.rewritten]
        missing = set(written.missing)
        # Only dead letters came, or what is new since the last copy: with everything that the hot
        # store has of these executions, there can be a row, and all changes.
        if missing:
            changes = await self._hot.changes(missing)
            number = max(number, await self._covering())
            whole = [
                _with_changes(copy, changes[copy.execution_id])
                for copy in copies
                if copy.execution_id in changes
            ]
            written = await self._store(number, whole)
            rewritten += written.rewritten
            missing -= changes.keys() - set(written.missing)

        if rewritten:
            await self._report_rewritten(rewritten)
        for execution_id in missing:
            log.error(
                "execution %s has no row in the cold store, and can't be archived into one",
                execution_id,
            )
        return missing

    async def _store(self, number: int, copies: Sequence[Copy]) -> Written:
        lease = self._lease
        return await self._cold.put_copies(
            lease.partition, number, copies, cold_number=lease.cold_number, term=lease.claim_term
        )

    async def _report_rewritten(self, execution_ids: Sequence[str]) -> None:
        """Log that the cold store had lost executions, and write their versions again too."""
        self._metrics.rewritten += len(execution_ids)
        log.error(
            "partition %d: the cold store had lost %d executions, such as %s; "
            "they were written again from the hot store. Was it put back to an older copy?",
            self._lease.partition,
            len(execution_ids),
            execution_ids[0],
        )

        # a version that was stored since that copy is lost too, and nobody else could go on with
        # these executions
        versions: set[tuple[str, int]] = set()
        for changes in (await self._hot.changes(execution_ids)).values():
            record = last_record(changes)
            if record is not None:
                versions.add((record.workflow, record.version))
        for workflow, version in sorted(versions):
            await self._put_version_back(workflow, version)

    async def _put_version_back(self, workflow: str, version: int) -> None:
        cached = self._plans.stored(workflow, version)
        try:
            is_there = cached is not None and await self._cold.put_version_back(cached)
        except StoreError as error:
            log.error(  # noqa: TRY400
                "workflow %s@%d can't be written again: %s", workflow, version, error
            )
            return
        if not is_there:
            log.error(
                "executions run with workflow %s@%d, and the cold store may have lost it, "
                "or have another under that number: "
                "submit it again before orchestrators are restarted",
                workflow,
                version,
            )

    async def _check_cold_store_writes(self, number: int, error: Exception) -> None:
        """Check that the cold store takes an empty write: only then it rejects the content.

        Raises `StoreUnavailable` if it doesn't.
        """
        try:
            await self._store(number, [])
        except (Fenced, ColdStoreWentBack, StoreUnavailable):
            raise
        except Exception:  # noqa: BLE001
            raise StoreUnavailable(
                f"the cold store fails: {type(error).__name__}: {error}"
            ) from error


def _portions(copies: Sequence[Copy], bytes_max: int) -> Iterator[list[Copy]]:
    portion: list[Copy] = []
    size = 0
    for copy in copies:
        copy_size = sum(len(change) for change in copy.changes)
        if portion and size + copy_size > bytes_max:
            yield portion
            portion = []
            size = 0
        portion.append(copy)
        size += copy_size
    if portion:
        yield portion


def _with_changes(copy: Copy, changes: list[bytes]) -> Copy:
    return Copy(
        copy.execution_id,
        copy.summary or summary_from(changes),
        changes,
        copy.dead_letters,
        copy.report,
    )
