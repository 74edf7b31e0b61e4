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
from penstock.stores.postgres.intents import INSERT_USES, record_intents_again
from penstock.stores.postgres.texts import blob_keys, digest, escaped
from penstock.stores.tiering import (
    Copy,
    Summary,
    Unfinished,
    Written,
    check_numbers,
    check_term,
    intent_from,
)

PENDING = str(ExecutionState.PENDING)
RUNNING = str(ExecutionState.RUNNING)

# Locked first: another process that copies for this partition waits here, and not in the middle.
LOCK_PARTITION = "SELECT commit_number, term FROM partitions WHERE number = %s FOR UPDATE"
# Generations too: after an older backup of this database was restored, the hot store has later ones
# than it knows.
RAISE_NUMBER = """
    UPDATE partitions SET commit_number = greatest(commit_number, %(number)s),
      generation = greatest(generation, %(generation)s)
    WHERE number = %(partition)s
"""
# Not `IN` the other phases: where nearly all executions have ended, the planner would read all that
# haven't from the index of states, for each batch again. So it has only the ids to go by.
HAS_NOT_ENDED = "executions.phase <> 'ended'"
UPDATE_ROWS = f"""
    UPDATE executions SET
      phase = copy.phase, state = copy.state,
      started_at = copy.started_at, ended_at = copy.ended_at,
      error = copy.error, error_node = copy.error_node,
      generation = copy.generation, revision = copy.revision
    FROM unnest(
      %b::text[], %b::text[], %b::text[], %b::float8[], %b::float8[],
      %b::bytea[], %b::text[], %b::int4[], %b::int8[]
    ) AS copy (id, phase, state, started_at, ended_at, error, error_node, generation, revision)
    WHERE executions.id = copy.id AND {HAS_NOT_ENDED}
      AND (executions.generation, executions.revision) < (copy.generation, copy.revision)
"""  # noqa: S608 -- our own words
# Of an execution that has ended, only the changes up to that end.
PUT_ARCHIVES = f"""
    INSERT INTO archives AS old (n, generation, revision, changes)
    SELECT n, copy.generation, copy.revision, copy.changes
    FROM unnest(%b::text[], %b::int4[], %b::int8[], %b::bytea[])
      AS copy (id, generation, revision, changes)
    JOIN executions ON executions.id = copy.id AND executions.generation = copy.generation
      AND ({HAS_NOT_ENDED} OR executions.revision = copy.revision)
    ON CONFLICT (n) DO UPDATE
      SET generation = excluded.generation, revision = excluded.revision, changes = excluded.changes
      WHERE (old.generation, old.revision) < (excluded.generation, excluded.revision)
"""  # noqa: S608 -- our own words
PUT_REPORTS = """
    INSERT INTO reports (n, report) SELECT n, new.report::jsonb
    FROM unnest(%b::text[], %b::text[]) AS new (id, report) JOIN executions USING (id)
    ON CONFLICT (n) DO UPDATE SET report = excluded.report
"""
# The execution may have been retried before the dead letter arrived: then it is closed already.
PUT_DEAD_LETTERS = """
    INSERT INTO dead_letters
      (n, mark, handler, category, dead_letter, closed, closed_at, retried_as)
    SELECT n, new.mark, new.handler, new.category, new.dead_letter,
      retry.how, retry.created_at, retry.id
    FROM unnest(%b::text[], %b::bytea[], %b::text[], %b::text[], %b::bytea[]) WITH ORDINALITY
      AS new (id, mark, handler, category, dead_letter, ordinal)
    JOIN executions USING (id)
    LEFT JOIN LATERAL (
      SELECT 'retried' AS how, created_at, id FROM executions
      WHERE retry_of = new.id ORDER BY n LIMIT 1
    ) AS retry ON true
    WHERE NOT EXISTS (SELECT 1 FROM dead_letters WHERE dead_letters.mark = new.mark)
    ORDER BY ordinal ON CONFLICT DO NOTHING
"""
SELECT_WITHOUT_ROW = """
    SELECT given.id FROM unnest(%b::text[]) AS given (id)
    WHERE NOT EXISTS (SELECT 1 FROM executions WHERE executions.id = given.id)
"""
SELECT_UNFINISHED = """
    SELECT id, greatest(executions.generation, 1), changes
    FROM executions LEFT JOIN archives USING (n)
    WHERE partition = %s AND phase = 'started' AND id > %s ORDER BY id LIMIT %s
"""


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
            cursor = await connection.execute(LOCK_PARTITION, (partition,), binary=True)
            stored_number, stored_term = await cursor.fetchone() or (0, 0)
            check_term(partition, term, stored_term)
            check_numbers(partition, commit_number, cold_number, stored_number)

            async with connection.pipeline():
                await connection.execute(RAISE_NUMBER, raised)
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
            SELECT_UNFINISHED, (partition, after, limit), seconds=SLOW_SECONDS
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
        update = await connection.execute(UPDATE_ROWS, _row_columns(merged), prepare=True)
        with_changes = {id_: copy for id_, copy in merged.items() if copy[1]}
        await _put_changes(connection, with_changes)

    reports = {copy.execution_id: copy.report for copy in copies if copy.report}
    if reports:
        texts = [report.decode() for report in reports.values()]
        await connection.execute(PUT_REPORTS, (list(reports), texts))

    dead_letters = list(chain.from_iterable(copy.dead_letters for copy in copies))
    if dead_letters:
        await connection.execute(PUT_DEAD_LETTERS, _dead_letter_columns(dead_letters))
    return update


async def _write_again(connection: Connection, partition: int, copies: Sequence[Copy]) -> Written:
    ids = list({copy.execution_id for copy in copies})
    if not ids:
        return Written()
    cursor = await connection.execute(SELECT_WITHOUT_ROW, (ids,), binary=True)
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
        PUT_ARCHIVES, (list(merged), generations, revisions, data), prepare=True
    )

    used_keys: list[str] = []
    used_by: list[str] = []
    for execution_id, changes in zip(merged, data, strict=True):
        for key in blob_keys(changes):
            used_keys.append(key)
            used_by.append(execution_id)
    if used_keys:
        await connection.execute(INSERT_USES, (used_keys, used_by))


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
