"""Copies from the hot store: archives, checkpoints and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

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
                update = await _write(connection, copies)
            if update is not None and update.rowcount == len(copies):
                return Written()
            # a copy that updated no row is outdated, or has only dead letters, or has no row
            return await _write_again(connection, partition, copies)

    async def write_again(self, partition: int, copies: Sequence[Copy]) -> Written:
        """Write rows of executions that are missing, from the hot store's copies of them.

        Existing rows stay as they are.
        """
        async with self._database.transaction(SLOW_SECONDS) as connection:
            return await _write_again(connection, partition, copies)

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


MergedCopy = tuple[Summary, list[bytes]]
"""An execution's newest summary and its changes."""


async def _write(connection: Connection, copies: Sequence[Copy]) -> AsyncCursor[Row] | None:
    """Write executions' summaries, changes, reports and dead letters.

    Answers the update of the rows, if there was one. In a pipeline, its row count is known when the
    pipeline has ended.
    """
    merged = _merge(copies)
    update = None
    if merged:
        update = await connection.execute(SQL.update_rows, _row_columns(merged), prepare=True)
        with_changes = {id_: copy for id_, copy in merged.items() if copy[1]}
        await _put_changes(connection, with_changes)

    reports = {copy.execution_id: copy.report for copy in copies if copy.report}
    if reports:
        texts = [report.decode() for report in reports.values()]
        await connection.execute(SQL.put_reports, (list(reports), texts))

    dead_letters = list(chain.from_iterable(copy.dead_letters for copy in copies))
    if dead_letters:
        await connection.execute(SQL.put_dead_letters, _dead_letter_columns(dead_letters))
    return update


async def _write_again(connection: Connection, partition: int, copies: Sequence[Copy]) -> Written:
    ids = list({copy.execution_id for copy in copies})
    if not ids:
        return Written()
    cursor = await connection.execute(SQL.select_without_row, (ids,), binary=True)
    without_row = {row[0] for row in await cursor.fetchall()}
    if not without_row:
        return Written()

    # of several copies of an execution, the last one counts
    changes = {c.execution_id: c.changes for c in copies if c.execution_id in without_row}
    intents: dict[str, Intent] = {}
    for execution_id, execution_changes in changes.items():
        intent = intent_from(execution_changes)
        if intent is not None:
            intents[execution_id] = intent
    await record_intents_again(connection, partition, list(intents.values()))
    await _write(connection, [copy for copy in copies if copy.execution_id in intents])
    return Written(sorted(intents), sorted(without_row - intents.keys()))


def _merge(copies: Sequence[Copy]) -> dict[str, MergedCopy]:
    """One copy for each execution, as if its copies were written one after another."""
    merged: dict[str, MergedCopy] = {}
    for copy in copies:
        summary = copy.summary
        if summary is None:
            continue
        earlier, changes = merged.get(copy.execution_id, (None, []))
        if earlier is not None and not _replaces(summary, earlier):
            merged[copy.execution_id] = (earlier, changes or copy.changes)
        else:
            merged[copy.execution_id] = (summary, copy.changes or changes)
    return merged


def _replaces(summary: Summary, earlier: Summary) -> bool:
    is_newer = (summary.generation, summary.revision) > (earlier.generation, earlier.revision)
    return is_newer and not earlier.has_ended


def _row_columns(merged: dict[str, MergedCopy]) -> list[list[object]]:
    rows = [_summary_row(execution_id, copy[0]) for execution_id, copy in merged.items()]
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


async def _put_changes(connection: Connection, merged: dict[str, MergedCopy]) -> None:
    if not merged:
        return
    data = [codec.encode(changes) for _, changes in merged.values()]
    generations = [summary.generation for summary, _ in merged.values()]
    revisions = [summary.revision for summary, _ in merged.values()]
    await connection.execute(
        SQL.put_archives, (list(merged), generations, revisions, data), prepare=True
    )

    uses: list[tuple[str, str]] = []
    for execution_id, changes in zip(merged, data, strict=True):
        uses += [(key, execution_id) for key in blob_keys(changes)]
    await record_blob_uses(connection, uses)


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
