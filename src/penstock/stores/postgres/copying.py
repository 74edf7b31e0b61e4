"""What comes from the hot store: archives of what has ended, checkpoints of what runs, dead letters."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import AsyncCursor

from penstock.engine.commands import DeadLetter
from penstock.engine.states import ExecutionState
from penstock.stores import codec
from penstock.stores.postgres.database import SLOW_SECONDS, Connection, Database, Row
from penstock.stores.postgres.executions import SHOULD_RUN, decode_changes
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

PENDING, RUNNING = str(ExecutionState.PENDING), str(ExecutionState.RUNNING)

# First of all: whoever else copies for this partition waits here, and not in the middle.
LOCK_PARTITION = "SELECT commit_number, term FROM partitions WHERE number = %s FOR UPDATE"
# Generations too: after an older copy of this database was put back, the hot store has later ones
# than it knows.
RAISE_NUMBER = """
    UPDATE partitions SET commit_number = greatest(commit_number, %(number)s),
      generation = greatest(generation, %(generation)s)
    WHERE number = %(partition)s
"""
# By what it is not: where nearly everything has ended, the planner would rather read all that has
# not, for each batch again, from the index of states. Now it has nothing but the ids to go by.
HAS_NOT_ENDED = "executions.state NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"
UPDATE_ROWS = f"""
    UPDATE executions SET state = copy.state, started_at = copy.started_at, ended_at = copy.ended_at,
      error = copy.error, error_node = copy.error_node, generation = copy.generation, revision = copy.revision
    FROM unnest(%b::text[], %b::text[], %b::float8[], %b::float8[], %b::bytea[], %b::text[], %b::int4[], %b::int8[])
      AS copy (id, state, started_at, ended_at, error, error_node, generation, revision)
    WHERE executions.id = copy.id AND {HAS_NOT_ENDED}
      AND (executions.generation, executions.revision) < (copy.generation, copy.revision)
"""  # noqa: S608 -- our own words
# of an execution that has ended only the changes up to that end
PUT_ARCHIVES = f"""
    INSERT INTO archives AS old (n, generation, revision, changes)
    SELECT n, copy.generation, copy.revision, copy.changes
    FROM unnest(%b::text[], %b::int4[], %b::int8[], %b::bytea[]) AS copy (id, generation, revision, changes)
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
# its execution may have been retried before this came: then that was seen to
PUT_DEAD_LETTERS = """
    INSERT INTO letters (n, mark, handler, category, letter, closed, closed_at, retried_as)
    SELECT n, new.mark, new.handler, new.category, new.letter, retry.how, retry.created_at, retry.id
    FROM unnest(%b::text[], %b::bytea[], %b::text[], %b::text[], %b::bytea[]) WITH ORDINALITY
      AS new (id, mark, handler, category, letter, ordinal)
    JOIN executions USING (id)
    LEFT JOIN LATERAL (
      SELECT 'retried' AS how, created_at, id FROM executions WHERE retry_of = new.id ORDER BY n LIMIT 1
    ) AS retry ON true
    WHERE NOT EXISTS (SELECT 1 FROM letters WHERE letters.mark = new.mark)
    ORDER BY ordinal ON CONFLICT DO NOTHING
"""
SELECT_WITHOUT_ROW = """
    SELECT given.id FROM unnest(%b::text[]) AS given (id)
    WHERE NOT EXISTS (SELECT 1 FROM executions WHERE executions.id = given.id)
"""
SELECT_UNFINISHED = f"""
    SELECT id, greatest(executions.generation, 1), changes FROM executions LEFT JOIN archives USING (n)
    WHERE partition = %s AND {SHOULD_RUN} AND id > %s ORDER BY id LIMIT %s
"""  # noqa: S608 -- our own words


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
        newest = max(
            (copy.summary.generation for copy in copies if copy.summary is not None), default=0
        )
        raised = {"partition": partition, "number": commit_number, "generation": newest}
        async with self._database.transaction(SLOW_SECONDS) as connection:
            cursor = await connection.execute(LOCK_PARTITION, (partition,), binary=True)
            found, found_term = await cursor.fetchone() or (0, 0)
            check_term(partition, term, found_term)
            check_numbers(partition, commit_number, cold_number, found)
            async with connection.pipeline():
                await connection.execute(RAISE_NUMBER, raised)
                update = await _write(connection, copies)
            if update is not None and update.rowcount == len(copies):
                return Written()
            # the others are there in a newer state, or only their dead letters came, or they have no row
            return await _write_again(connection, partition, copies)

    async def write_again(self, partition: int, copies: Sequence[Copy]) -> Written:
        """Write executions' rows that are missing, from the hot store's copies of them.

        What there is stays as it is.
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


Told = tuple[Summary, list[bytes]]


async def _write(connection: Connection, copies: Sequence[Copy]) -> AsyncCursor[Row] | None:
    """Write executions' changes and their dead letters.

    Answers the update of the rows, if there was one.

    Its row count is known when the pipeline has ended, if this is in one.
    """
    told, update = _merged(copies), None
    if told:
        update = await connection.execute(UPDATE_ROWS, _row_columns(told), prepare=True)
        await _put_changes(
            connection, {execution_id: copy for execution_id, copy in told.items() if copy[1]}
        )
    reports = {copy.execution_id: copy.report for copy in copies if copy.report}
    if reports:
        await connection.execute(
            PUT_REPORTS, (list(reports), [report.decode() for report in reports.values()])
        )
    dead_letters = [dead_letter for copy in copies for dead_letter in copy.dead_letters]
    if dead_letters:
        await connection.execute(PUT_DEAD_LETTERS, _dead_letter_columns(dead_letters))
    return update


async def _write_again(connection: Connection, partition: int, copies: Sequence[Copy]) -> Written:
    ids = list({copy.execution_id for copy in copies})
    if not ids:
        return Written()
    cursor = await connection.execute(SELECT_WITHOUT_ROW, (ids,), binary=True)
    without = {row[0] for row in await cursor.fetchall()}
    if not without:
        return Written()
    intents = {
        copy.execution_id: intent_from(copy.changes)
        for copy in copies
        if copy.execution_id in without
    }
    found = {execution_id: intent for execution_id, intent in intents.items() if intent is not None}
    await record_intents_again(connection, partition, list(found.values()))
    await _write(connection, [copy for copy in copies if copy.execution_id in found])
    return Written(sorted(found), sorted(without - found.keys()))


def _merged(copies: Sequence[Copy]) -> dict[str, Told]:
    """Copies, one for each execution: the last, as if they came one after another.

    Its changes are all that there are.
    """
    told: dict[str, Told] = {}
    for copy in copies:
        summary = copy.summary
        if summary is None:
            continue
        before, changes = told.get(copy.execution_id, (None, []))
        if before is not None and not _replaces(summary, before):
            told[copy.execution_id] = (before, changes or copy.changes)
        else:
            told[copy.execution_id] = (summary, copy.changes or changes)
    return told


def _replaces(summary: Summary, before: Summary) -> bool:
    newer = (summary.generation, summary.revision) > (before.generation, before.revision)
    return newer and not before.has_ended


def _row_columns(told: dict[str, Told]) -> list[list[object]]:
    summaries = [summary for summary, _ in told.values()]
    return [
        list(told),
        # a row that is PENDING waits for its trigger, and this one has begun
        [RUNNING if summary.state == PENDING else summary.state for summary in summaries],
        [summary.started_at for summary in summaries],
        [summary.finished_at for summary in summaries],
        [None if summary.error is None else codec.encode(summary.error) for summary in summaries],
        [
            None if summary.error_node_id is None else escaped(summary.error_node_id)
            for summary in summaries
        ],
        [summary.generation for summary in summaries],
        [summary.revision for summary in summaries],
    ]


async def _put_changes(connection: Connection, told: dict[str, Told]) -> None:
    if not told:
        return
    data = [codec.encode(changes) for _, changes in told.values()]
    generations = [summary.generation for summary, _ in told.values()]
    revisions = [summary.revision for summary, _ in told.values()]
    await connection.execute(PUT_ARCHIVES, (list(told), generations, revisions, data), prepare=True)
    uses = [
        (key, execution_id)
        for execution_id, changes in zip(told, data, strict=True)
        for key in blob_keys(changes)
    ]
    if uses:
        await connection.execute(
            INSERT_USES, ([key for key, _ in uses], [execution_id for _, execution_id in uses])
        )


def _dead_letter_columns(dead_letters: Sequence[DeadLetter]) -> list[list[object]]:
    return [
        [dead_letter.execution_id for dead_letter in dead_letters],
        [
            digest(dead_letter.execution_id, dead_letter.node_id, dead_letter.at)
            for dead_letter in dead_letters
        ],
        [escaped(dead_letter.handler) for dead_letter in dead_letters],
        [
            escaped(dead_letter.attempts[-1].error.category) if dead_letter.attempts else ""
            for dead_letter in dead_letters
        ],
        [codec.encode(dead_letter) for dead_letter in dead_letters],
    ]
