-- The rows of a search; the search itself is put together in searching.py.

-- select_row --
-- What a search shows of an execution. Argument: n. Result: n, id, workflow, version, state, created_at, ended_at,
-- labels, retry_of, and its last change (its first, if it hasn't ended): one of these has the record.
SELECT n, id, workflow, version, state, created_at, ended_at, labels, retry_of,
  CASE WHEN ended_at IS NULL
  THEN (
    SELECT change FROM changes WHERE changes.n = executions.n
    ORDER BY changes.id LIMIT 1
  )
  ELSE (
    SELECT change FROM changes WHERE changes.n = executions.n
    ORDER BY changes.id DESC LIMIT 1
  ) END
FROM executions WHERE n = ?
