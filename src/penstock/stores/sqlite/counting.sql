-- Counts of executions and dead letters in the file.

-- count_created --
-- Executions created in a window. Arguments: since, width (seconds of a bucket), buckets, first (the smallest number
-- of the window), limit. Result: workflow, state, bucket, count, id of one of them, its number.
-- `id` is that of the row with the greatest `n` of its group: SQLite promises this where the only aggregate of that
-- kind is one max(). The end of the window is open: executions that were created while the clock was ahead count in
-- the last bucket.
SELECT
  workflow,
  state,
  min(CAST((created_at - :since) / :width AS INTEGER), :buckets - 1) AS bucket,
  count(*), id, max(n)
FROM (
  SELECT n, id, workflow, state, created_at FROM executions
  WHERE n >= :first AND created_at >= :since ORDER BY n DESC LIMIT :limit
) AS executions GROUP BY workflow, state, bucket

-- has_more --
-- Whether a window has more executions than the limit. Arguments: first, since, limit. Result: a row if so.
SELECT 1 FROM executions WHERE n >= :first AND created_at >= :since
ORDER BY n DESC LIMIT 1 OFFSET :limit

-- count_state --
-- Executions of a phase and state. Arguments: phase, state, limit. Result: their number, up to the limit.
SELECT count(*) FROM (
  SELECT 1 FROM executions INDEXED BY by_state WHERE phase = ? AND state = ? LIMIT ?
)

-- count_unfinished --
-- Executions that should run. No arguments. Result: workflow, count.
SELECT workflow, count(*) FROM executions INDEXED BY by_state
WHERE phase = 'started' GROUP BY workflow

-- count_dead_letters --
-- Open dead letters. Argument: limit. Result: their number, up to the limit.
SELECT count(*) FROM (
  SELECT 1 FROM dead_letters INDEXED BY open_dead_letters WHERE closed IS NULL LIMIT ?
)
