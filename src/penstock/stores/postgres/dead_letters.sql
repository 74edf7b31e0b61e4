-- Dead letters in PostgreSQL.

-- select_dead_letters --
-- Dead letters. Completed by conditions. Result: id, dead letter, workflow, version, closed, closed_at, retried_as.
SELECT dead_letters.id, dead_letter, workflow, version, closed, closed_at, retried_as
FROM dead_letters JOIN executions USING (n)

-- close_dead_letters --
-- Closes dead letters. Arguments: how, time, execution id of the retry, ids. Result: the number of those that were
-- open.
UPDATE dead_letters SET closed = %s, closed_at = %s, retried_as = %s WHERE id = ANY(%s::bigint[]) AND closed
IS NULL
