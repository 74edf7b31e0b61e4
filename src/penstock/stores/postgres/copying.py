"""Copies from the hot store: archives, checkpoints and dead letters.

The changes of an execution are in segments: each copy adds what is new since the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from psycopg import AsyncCursor

from penstock.engine.commands import DeadLetter
from penstock.engine.states import ExecutionState
from penstock.stores import codec
from penstock.stores.base import Intent
from penstock.stores.matching import last_category
from penstock.stores.phases import phase_of_begun
from penstock.stores.postgres.database import SLOW_SECONDS, Connection, Database, Row
from penstock.stores.postgres.executions import decode_changes
from penstock.stores.postgres.intents import record_blob_uses, record_intents_again
from penstock.stores.postgres.signals import mark_copied
from penstock.stores.postgres.texts import blob_keys, digest, escaped
from penstock.stores.sql.statements import statements_beside
from penstock.stores.tiering import (
    Copy,
    Summary,
    Unfinished,
    Written,
    check_numbers,
    check_term,
    intent_from,
)

SQL = statements_beside(__file__)

PENDING = str(ExecutionState.PENDING)
RUNNING = str(ExecutionState.RUNNING)


class PostgresCopies:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.partitions = 0
        """Known once the store has been opened."""

    async def put_copies(
        self,
        partition: int,
        commit_number: int,
        copies: Sequence[Copy],
        *,
        cold_number: int = 0,
        term: int | None = None,
    ) -> Written:
        generations = [copy.summary.generation for copy in copies if copy.summary is not None]
        raised = {
            "partition": partition,
            "number": commit_number,
            "generation": max(generations, default=0),
        }
        async with self._database.transaction(SLOW_SECONDS) as connection:
            cursor = await connection.execute(SQL.lock_partition, (partition,), binary=True)
            stored_number, stored_term = await cursor.fetchone() or (0, 0)
            check_term(partition, term, stored_term)
            check_numbers(partition, commit_number, cold_number, stored_number)

            async with connection.pipeline():
                await connection.execute(SQL.raise_number, raised)
                results = await _write(connection, copies)
            changes = {copy.execution_id: copy.changes for copy in copies if copy.changes}
            if changes:
                await mark_copied(connection, changes)
            if results.are_all_of(copies):
                return Written()
            # a copy that updated no row is outdated, or has only dead letters, or has no row; one
            # whose changes weren't stored is outdated, or changes before them are missing
            gaps = await _gaps(connection, copies)
            written = await _write_again(connection, partition, copies, self.partitions)
            return Written(written.rewritten, tuple(sorted({*written.missing, *gaps})))

    async def write_again(self, partition: int, copies: Sequence[Copy]) -> Written:
        """Write rows of executions that are missing, from the hot store's copies of them.

        Existing rows stay as they are.
        """
        async with self._database.transaction(SLOW_SECONDS) as connection:
            return await _write_again(connection, partition, copies, self.partitions)

    async def unfinished(
        self, partition: int, after: str = "", limit: int = 500
    ) -> list[Unfinished]:
        rows = await self._database.rows(
            SQL.select_unfinished, (partition, after, limit), seconds=SLOW_SECONDS
        )
        return [
            Unfinished(execution_id, generation, decode_changes(changes))
            for execution_id, generation, changes in rows
        ]


class MergedCopy(NamedTuple):
    """The copies of an execution as one."""

    summary: Summary
    first: int
    changes: list[bytes]

    @property
    def until(self) -> int:
        return self.first + len(self.changes)


class Results(NamedTuple):
    """Statements that have written copies; row counts are known when the pipeline has ended."""

    update: AsyncCursor[Row] | None
    put: AsyncCursor[Row] | None

    def are_all_of(self, copies: Sequence[Copy]) -> bool:
        """Whether each copy has updated a row, and its changes were stored."""
        updated = 0 if self.update is None else self.update.rowcount
        stored = 0 if self.put is None else self.put.rowcount
        return updated == len(copies) and stored == sum(bool(copy.changes) for copy in copies)


async def _write(connection: Connection, copies: Sequence[Copy]) -> Results:
    """Write executions' summaries, changes, reports and dead letters."""
    merged = _merge(copies)
    update = None
    put = None
    if merged:
        update = await connection.execute(SQL.update_rows, _row_columns(merged), prepare=True)
        with_changes = {id_: copy for id_, copy in merged.items() if copy.changes}
        put = await _put_changes(connection, with_changes)

    reports = {copy.execution_id: copy.report for copy in copies if copy.report}
    if reports:
        texts = [report.decode() for report in reports.values()]
        await connection.execute(SQL.put_reports, (list(reports), texts))

    dead_letters = list(chain.from_iterable(copy.dead_letters for copy in copies))
    if dead_letters:
        await connection.execute(SQL.put_dead_letters, _dead_letter_columns(dead_letters))
    return Results(update, put)


async def _gaps(connection: Connection, copies: Sequence[Copy]) -> list[str]:
    """Executions whose stored changes don't end where the copies begin."""
    merged = {id_: copy for id_, copy in _merge(copies).items() if copy.first}
    if not merged:
        return []
    generations = [copy.summary.generation for copy in merged.values()]
    revisions = [copy.summary.revision for copy in merged.values()]
    firsts = [copy.first for copy in merged.values()]
    cursor = await connection.execute(
        SQL.select_gaps, (list(merged), generations, revisions, firsts), binary=True
    )
    return [row[0] for row in await cursor.fetchall()]


async def _write_again(
    connection: Connection, partition: int, copies: Sequence[Copy], partitions: int
) -> Written:
    ids = list({copy.execution_id for copy in copies})
    if not ids:
        return Written()
    cursor = await connection.execute(SQL.select_without_row, (ids,), binary=True)
    without_row = {row[0] for row in await cursor.fetchall()}
    if not without_row:
        return Written()

    # of several copies of an execution, the last one counts; without its first changes, none does
    changes = {
        copy.execution_id: [] if copy.first else copy.changes
        for copy in copies
        if copy.execution_id in without_row
    }
    intents: dict[str, Intent] = {}
    for execution_id, execution_changes in changes.items():
        intent = intent_from(execution_changes)
        if intent is not None:
            intents[execution_id] = intent
    await record_intents_again(connection, partition, list(intents.values()), partitions)
    await _write(connection, [copy for copy in copies if copy.execution_id in intents])
    return Written(sorted(intents), sorted(without_row - intents.keys()))


def _merge(copies: Sequence[Copy]) -> dict[str, MergedCopy]:
    """One copy for each execution, as if its copies were written one after another."""
    merged: dict[str, MergedCopy] = {}
    for copy in copies:
        summary = copy.summary
        if summary is None:
            continue
        earlier = merged.get(copy.execution_id)
        if earlier is None:
            merged[copy.execution_id] = MergedCopy(summary, copy.first, copy.changes)
        elif not _replaces(summary, earlier.summary):
            merged[copy.execution_id] = _with_changes_of(earlier, copy)
        else:
            newest = MergedCopy(summary, copy.first, copy.changes)
            merged[copy.execution_id] = _with_changes_of(newest, earlier)
    return merged


def _with_changes_of(merged: MergedCopy, other: Copy | MergedCopy) -> MergedCopy:
    """A copy with the changes of another, if it has none of its own."""
    if merged.changes:
        return merged
    return MergedCopy(merged.summary, other.first, other.changes)


def _replaces(summary: Summary, earlier: Summary) -> bool:
    is_newer = (summary.generation, summary.revision) > (earlier.generation, earlier.revision)
    return is_newer and not earlier.has_ended


def _row_columns(merged: dict[str, MergedCopy]) -> list[list[object]]:
    rows = [_summary_row(execution_id, copy.summary) for execution_id, copy in merged.items()]
    return [list(column) for column in zip(*rows, strict=True)]


def _summary_row(execution_id: str, summary: Summary) -> Row:
    error = summary.error
    error_node_id = summary.error_node_id
    return (
        execution_id,
        str(phase_of_begun(summary.state)),
        # one that is copied has begun, whatever its record says
        RUNNING if summary.state == PENDING else summary.state,
        summary.started_at,
        summary.finished_at,
        None if error is None else codec.encode(error),
        None if error_node_id is None else escaped(error_node_id),
        summary.generation,
        summary.revision,
    )


async def _put_changes(
    connection: Connection, merged: dict[str, MergedCopy]
) -> AsyncCursor[Row] | None:
    if not merged:
        return None
    columns = _segment_columns(merged)
    put = await connection.execute(SQL.put_segments, columns, prepare=True)

    uses: list[tuple[str, str]] = []
    for execution_id, changes in zip(merged, columns[-1], strict=True):
        uses += [(key, execution_id) for key in blob_keys(changes)]
    await record_blob_uses(connection, uses)
    return put


def _segment_columns(merged: dict[str, MergedCopy]) -> tuple[list[Any], ...]:
    copies = merged.values()
    return (
        list(merged),
        [copy.summary.generation for copy in copies],
        [copy.summary.revision for copy in copies],
        [copy.first for copy in copies],
        [copy.until for copy in copies],
        [codec.encode(copy.changes) for copy in copies],
    )


def _dead_letter_columns(dead_letters: Sequence[DeadLetter]) -> list[list[object]]:
    rows = [_dead_letter_row(dead_letter) for dead_letter in dead_letters]
    return [list(column) for column in zip(*rows, strict=True)]


def _dead_letter_row(dead_letter: DeadLetter) -> Row:
    return (
        dead_letter.execution_id,
        digest(dead_letter.execution_id, dead_letter.node_id, dead_letter.at),
        escaped(dead_letter.handler),
        escaped(last_category(dead_letter)),
        codec.encode(dead_letter),
    )
