-- Dead letters in the file.

-- select_dead_letters --
-- Dead letters. Completed by conditions. Result: id, dead letter, workflow, version, closed, closed_at, retried_as.
SELECT dead_letters.id, dead_letter, workflow, version, closed, closed_at, retried_as
FROM dead_letters CROSS JOIN executions USING (n)

-- close_dead_letter --
-- Closes a dead letter. Arguments: how, time, execution id of the retry, id. Result: one changed row, or none if it
-- was closed.
UPDATE dead_letters SET closed = ?, closed_at = ?, retried_as = ?
WHERE id = ? AND closed IS NULL
