-- Intents and executions in the file.

-- select_intent --
-- The intent of an execution. Argument: id. Result: n, phase, state, intent, rest, retry_of.
SELECT n, phase, state, intent, rest, retry_of FROM executions WHERE id = ?

-- select_key_use --
-- The use of an idempotency key. Arguments: scope, key. Result: execution id, request hash, created_at.
SELECT execution_id, request_hash, created_at FROM idempotency
WHERE scope = ? AND key = ?

-- trigger --
-- Starts an execution that waits. Arguments: phase, intent, n.
UPDATE executions SET phase = ?, intent = ? WHERE n = ?

-- select_control --
-- What decides about a control request. Argument: id. Result: n, phase, state, last control request.
SELECT n, phase, state, control_request FROM executions WHERE id = ?

-- request_control --
-- Records a control request. Arguments: control request, phase, n.
UPDATE executions SET control_request = ?, phase = ? WHERE n = ?

-- select_control_requests --
-- Control requests for executions that haven't ended. No arguments. Result: id, control request.
SELECT id, control_request FROM executions
WHERE phase = 'started' AND control_request IS NOT NULL

-- select_number --
-- The number of an execution. Argument: id.
SELECT n FROM executions WHERE id = ?

-- select_changes_backwards --
-- Changes of an execution, the newest first. Argument: n. Result: change.
SELECT change FROM changes WHERE n = ? ORDER BY id DESC

-- select_feed --
-- The commit feed behind a position. Argument: position. Result: position, execution id, change.
SELECT changes.id, executions.id, change FROM changes CROSS JOIN executions USING (n)
WHERE changes.id > ? ORDER BY changes.id

-- select_feed_end --
-- The last position of the commit feed. No arguments.
SELECT coalesce(max(id), 0) FROM changes
