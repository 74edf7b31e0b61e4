-- Intents, control requests and executions in PostgreSQL.

-- select_intents --
-- Intents of executions. Argument: ids. Result: id, phase, state, intent, rest, retry_of.
SELECT id, phase, state, intent, rest, retry_of FROM executions WHERE id = ANY(%s)

-- select_key_use --
-- The use of an idempotency key. Argument: digest of scope and key. Result: execution id, request hash, created_at.
SELECT execution_id, request_hash, created_at FROM idempotency WHERE key = %s

-- trigger --
-- Starts an execution that waits. Arguments: phase, intent, n.
UPDATE executions SET phase = %s, intent = %s WHERE n = %s

-- request_control --
-- Records a control request. Arguments: control request, phase, n.
UPDATE executions SET control_request = %s, phase = %s WHERE n = %s

-- select_control_requests --
-- Control requests that aren't fulfilled, for executions that haven't ended. Argument: partition. Result: id,
-- control request.
-- A control request that was carried out doesn't count any more. The hot store reports every pause and resume. A row
-- that is behind is so for a moment only; until then a request may be read once too often, or a moment later.
SELECT id, control_request FROM executions WHERE partition = %s AND phase = 'started' AND (
  control_request = 'cancel'
  OR (control_request = 'pause' AND state <> 'PAUSED')
  OR (control_request = 'resume' AND state = 'PAUSED')
)

-- select_unbegun --
-- Executions that should run and have no copy. Argument: partition. Result: id, in order of creation.
-- Not by the state, PENDING: the planner would read those of all partitions from the index by_state.
SELECT id FROM executions
WHERE partition = %s AND phase = 'started' AND generation = 0 ORDER BY n

-- select_execution --
-- An execution. Argument: id. Result: intent, changes (an array, or null), state, started_at, ended_at, error, error_node.
SELECT intent, (SELECT array_agg(changes ORDER BY first) FROM segments WHERE segments.n = executions.n),
  state, started_at, ended_at, error, error_node
FROM executions WHERE id = %s

-- select_changes --
-- Changes of an execution. Argument: id. Result: an array, or null; no row if there is no such execution.
SELECT (SELECT array_agg(changes ORDER BY first) FROM segments WHERE segments.n = executions.n)
FROM executions WHERE id = %s
