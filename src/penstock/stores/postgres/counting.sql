-- Counts of executions and dead letters in PostgreSQL.

-- select_after --
-- The number that a window begins behind. Arguments: steps (distances from the last number), before (time), limit.
-- Result: a number.
WITH last AS (SELECT coalesce(max(n), 0) AS n FROM executions)
SELECT last.n - coalesce((
  SELECT min(step) FROM unnest(%(steps)s::bigint[]) AS step WHERE %(before)s > coalesce(
    (
      SELECT created_at FROM executions WHERE executions.n <= last.n - step
      ORDER BY executions.n DESC LIMIT 1
    ),
    '-infinity')
), %(limit)s) FROM last

-- count_created --
-- Executions created in a window. Arguments: since, width (seconds of a bucket), buckets, after (a number). Result:
-- workflow, state, bucket, count, id of one of them.
-- The time is compared in a way that keeps the planner from the index by_time: pages that it hasn't summarized yet
-- would be read as a whole.
SELECT workflow, state,
  least(floor((created_at - %(since)s) / %(width)s)::bigint, %(buckets)s - 1) AS bucket,
  count(*), max(id)
FROM executions WHERE n > %(after)s AND created_at - %(since)s >= 0
GROUP BY workflow, state, bucket

-- select_before --
-- When the last execution up to a number was created. Argument: n.
SELECT created_at FROM executions WHERE n <= %s ORDER BY n DESC LIMIT 1

-- count_active --
-- Active executions by state. Argument: limit. Result: state, count.
SELECT state, count(*) FROM (
  (
    SELECT state FROM executions WHERE phase = 'waiting' AND state = 'PENDING'
    ORDER BY n DESC LIMIT %(limit)s
  ) UNION ALL (
    SELECT state FROM executions WHERE phase = 'started' AND state = 'PENDING'
    ORDER BY n DESC LIMIT 2 * %(limit)s
  ) UNION ALL (
    SELECT state FROM executions WHERE phase = 'started' AND state = 'RUNNING'
    ORDER BY n DESC LIMIT %(limit)s
  ) UNION ALL (
    SELECT state FROM executions WHERE phase = 'started' AND state = 'PAUSED'
    ORDER BY n DESC LIMIT %(limit)s
  )
) AS active GROUP BY state

-- select_unheard --
-- The newest executions that should run and have no copy. Argument: limit. Result: id, workflow, created_at.
SELECT id, workflow, created_at FROM executions
WHERE phase = 'started' AND state = 'PENDING' ORDER BY n DESC LIMIT %s

-- count_unfinished --
-- Executions that should run. No arguments. Result: workflow, count.
SELECT workflow, count(*) FROM executions WHERE phase = 'started' GROUP BY workflow

-- count_dead_letters --
-- Open dead letters. Argument: limit. Result: their number, up to the limit.
SELECT count(*) FROM (SELECT 1 FROM dead_letters WHERE closed IS NULL LIMIT %s) AS open
