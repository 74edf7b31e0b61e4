-- Deleting old executions from the file.

-- select_oldest_started --
-- When the oldest execution that should run was created. No arguments. Result: a time or null.
SELECT min(created_at) FROM executions WHERE phase = 'started'

-- insert_forgotten --
-- Notes that the changes of a deleted execution are still to go. Argument: n.
INSERT INTO forgotten VALUES (?)

-- delete_label --
-- Deletes a label. Arguments: key, value, n.
DELETE FROM labels WHERE key = ? AND value = ? AND n = ?

-- delete_key --
-- Deletes an idempotency key, unless it was used again. Arguments: scope, key, execution id.
DELETE FROM idempotency WHERE scope = ? AND key = ? AND execution_id = ?

-- select_dead_letters --
-- Dead letters of an execution. Argument: n. Result: id.
SELECT id FROM dead_letters WHERE n = ?

-- delete_timer --
-- Deletes the timer of an execution. Argument: n.
DELETE FROM timers WHERE n = ?

-- delete_report --
-- Deletes the report of an execution. Argument: n.
DELETE FROM reports WHERE n = ?

-- delete_signals --
-- Deletes the signals of an execution. Argument: n.
DELETE FROM signals WHERE n = ?

-- delete_execution --
-- Deletes the row of an execution. Argument: n.
DELETE FROM executions WHERE n = ?

-- select_forgotten_changes --
-- Changes that are still to go. Argument: limit. Result: id, bytes.
SELECT id, length(change) FROM forgotten CROSS JOIN changes USING (n) LIMIT ?

-- delete_forgotten --
-- Notes that no changes are left to go. No arguments.
DELETE FROM forgotten
