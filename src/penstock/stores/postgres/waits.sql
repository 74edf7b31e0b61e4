-- Open waits in PostgreSQL.

-- delete_waits --
-- Closes waits. Arguments, arrays of the same length: execution id, node.
DELETE FROM waits USING unnest(%b::text[], %b::text[]) AS old (id, node_id), executions
WHERE executions.id = old.id AND waits.n = executions.n AND waits.node_id = old.node_id

-- put_waits --
-- Opens waits, also in place of earlier ones of the nodes. Arguments, arrays of the same length: execution id, node,
-- kind, correlation, wait.
INSERT INTO waits (n, node_id, kind, correlation, wait)
SELECT n, new.node_id, new.kind, new.correlation, new.wait
FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::bytea[])
  AS new (id, node_id, kind, correlation, wait)
JOIN executions USING (id) WHERE phase = 'started'
ON CONFLICT (n, node_id) DO UPDATE SET
  kind = excluded.kind, correlation = excluded.correlation, wait = excluded.wait

-- select_waits --
-- Open waits of executions that haven't ended. Arguments: after (an id), kind or null, correlation or null, limit.
-- Result: id, workflow, version, wait.
SELECT waits.id, workflow, version, wait FROM waits JOIN executions USING (n)
WHERE waits.id > %(after)s AND phase = 'started'
  AND (%(kind)s::text IS NULL OR kind = %(kind)s::text)
  AND (%(correlation)s::text IS NULL OR correlation = %(correlation)s::text)
ORDER BY waits.id LIMIT %(limit)s

-- select_known --
-- Nodes that are known to wait. Arguments, arrays of the same length: execution id, node. Result: execution id, node.
SELECT executions.id, waits.node_id FROM unnest(%b::text[], %b::text[]) AS given (id, node_id)
JOIN executions ON executions.id = given.id
JOIN waits ON waits.n = executions.n AND waits.node_id = given.node_id

-- select_numbers --
-- Numbers of executions that haven't ended. Argument: ids. Result: id, n.
SELECT id, n FROM executions WHERE id = ANY(%b) AND phase = 'started'
