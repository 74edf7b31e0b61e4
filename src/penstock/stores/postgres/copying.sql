-- Copies from the hot store. Arguments are arrays of the same length: one item for each execution.

-- lock_partition --
-- Locks a partition. Argument: its number. Result: commit number, term.
-- Locked first: another process that copies for this partition waits here, and not in the middle.
SELECT commit_number, claim_term FROM partitions WHERE number = %s FOR UPDATE

-- raise_number --
-- Raises the numbers of a partition. Arguments: partition, number (of the commit), generation.
-- Generations too: after an older backup of this database was restored, the hot store has later ones than it knows.
UPDATE partitions SET commit_number = greatest(commit_number, %(number)s),
  generation = greatest(generation, %(generation)s)
WHERE number = %(partition)s

-- update_rows --
-- Writes summaries. Arguments: id, phase, state, started_at, ended_at, error, error_node, generation, revision.
-- Result: the number of rows that were older and hadn't ended.
-- Not `phase IN (…)`: where nearly all executions have ended, the planner would read all that haven't from the index
-- by_state, for each batch again. So it has only the ids to go by.
UPDATE executions SET
  phase = copy.phase, state = copy.state,
  started_at = copy.started_at, ended_at = copy.ended_at,
  error = copy.error, error_node = copy.error_node,
  generation = copy.generation, revision = copy.revision,
  archived_at = CASE WHEN copy.phase = 'ended' AND parent IS NOT NULL
    THEN extract(epoch FROM clock_timestamp()) END
FROM unnest(
  %b::text[], %b::text[], %b::text[], %b::float8[], %b::float8[],
  %b::bytea[], %b::text[], %b::int4[], %b::int8[]
) AS copy (id, phase, state, started_at, ended_at, error, error_node, generation, revision)
WHERE executions.id = copy.id AND executions.phase <> 'ended'
  AND (executions.generation, executions.revision) < (copy.generation, copy.revision)

-- put_segments --
-- Writes changes. Arguments: id, generation, revision, first, until, changes. Result: the number of copies written.
-- Only if the row is of the copy's generation and revision: it has taken the copy, or had it already. Only if the copy
-- begins where a segment ends, and if fewer changes are stored than there are with it.
-- Segments are looked up for each row, by the limit: the planner might read the whole table otherwise.
WITH new AS (
  SELECT n, copy.generation, copy.first, copy.until, copy.changes, last.until AS stored_until
  FROM unnest(%b::text[], %b::int4[], %b::int8[], %b::int4[], %b::int4[], %b::bytea[])
    AS copy (id, generation, revision, first, until, changes)
  JOIN executions ON executions.id = copy.id AND executions.generation = copy.generation
    AND executions.revision = copy.revision
  LEFT JOIN LATERAL (
    SELECT until FROM segments
    WHERE copy.first > 0
      AND segments.n = executions.n AND segments.generation = copy.generation AND segments.first < copy.first
    ORDER BY first DESC LIMIT 1
  ) AS before ON true
  LEFT JOIN LATERAL (
    SELECT generation, until FROM segments WHERE segments.n = executions.n
    ORDER BY generation DESC, first DESC LIMIT 1
  ) AS last ON true
  WHERE copy.first = coalesce(before.until, 0)
    AND copy.until > CASE WHEN last.generation = copy.generation THEN last.until ELSE 0 END
), replaced AS (
  DELETE FROM segments USING new
  WHERE new.stored_until IS NOT NULL AND segments.n = new.n
    AND (segments.generation < new.generation OR segments.first > new.first)
)
INSERT INTO segments (n, generation, first, until, changes)
SELECT n, generation, first, until, changes FROM new
ON CONFLICT (n, generation, first) DO UPDATE
  SET until = excluded.until, changes = excluded.changes

-- select_gaps --
-- Copies that don't begin where a segment ends. Arguments: id, generation, revision, first. Result: id.
SELECT copy.id FROM unnest(%b::text[], %b::int4[], %b::int8[], %b::int4[]) AS copy (id, generation, revision, first)
JOIN executions ON executions.id = copy.id AND executions.generation = copy.generation
  AND executions.revision = copy.revision
LEFT JOIN LATERAL (
  SELECT until FROM segments
  WHERE segments.n = executions.n AND segments.generation = copy.generation AND segments.first < copy.first
  ORDER BY first DESC LIMIT 1
) AS before ON true
WHERE copy.first <> coalesce(before.until, 0)

-- put_reports --
-- Writes reports. Arguments: id, report.
INSERT INTO reports (n, report) SELECT n, new.report::jsonb
FROM unnest(%b::text[], %b::text[]) AS new (id, report) JOIN executions USING (id)
ON CONFLICT (n) DO UPDATE SET report = excluded.report

-- put_dead_letters --
-- Writes dead letters that aren't there. Arguments: execution id, mark, handler, category, dead letter.
-- The execution may have been retried before the dead letter arrived: then it is closed already.
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

-- select_without_row --
-- Executions that have no row. Argument: id. Result: id.
SELECT given.id FROM unnest(%b::text[]) AS given (id)
WHERE NOT EXISTS (SELECT 1 FROM executions WHERE executions.id = given.id)

-- select_unfinished --
-- Executions that should run and haven't ended. Arguments, no arrays: partition, the id to begin behind, limit.
-- Result: id, generation, changes up to the last checkpoint: an array, or null.
SELECT id, greatest(generation, 1),
  (SELECT array_agg(changes ORDER BY first) FROM segments WHERE segments.n = executions.n)
FROM executions
WHERE partition = %s AND phase = 'started' AND id > %s ORDER BY id LIMIT %s
