-- Open waits in the file.

-- put_wait --
-- Opens a wait, also in place of an earlier one of the node. Arguments: n, node, kind, correlation, wait.
INSERT OR REPLACE INTO waits (n, node_id, kind, correlation, wait) VALUES (?, ?, ?, ?, ?)

-- delete_wait --
-- Closes a wait. Arguments: n, node.
DELETE FROM waits WHERE n = ? AND node_id = ?

-- select_waits --
-- Open waits. Arguments: the id to begin behind, kind or null (twice), correlation or null (twice), limit. Result: id,
-- workflow, version, wait.
SELECT waits.id, workflow, version, wait FROM waits CROSS JOIN executions USING (n)
WHERE waits.id > ? AND (? IS NULL OR kind = ?) AND (? IS NULL OR correlation = ?) ORDER BY waits.id LIMIT ?

-- select_wait --
-- Whether a node is known to wait. Arguments: n, node.
SELECT 1 FROM waits WHERE n = ? AND node_id = ?
