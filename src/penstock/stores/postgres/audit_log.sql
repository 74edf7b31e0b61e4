-- The audit log in PostgreSQL.

-- forget_lines --
-- Deletes old lines. Arguments: how many lines at most, time. Result: the number of deleted rows.
-- Lines are in the order of time: if the first ones are younger, so is the rest.
DELETE FROM audit WHERE id IN (
  SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT %s) AS first WHERE at < %s
)
