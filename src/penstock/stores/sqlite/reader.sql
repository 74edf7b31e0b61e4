-- Executions as the hot store and the views read them.

-- select_timers --
-- All timers. No arguments. Result: execution id, time.
SELECT id, wake_at FROM timers JOIN executions USING (n)

-- select_started --
-- Executions that should run and haven't ended. No arguments. Result: id.
SELECT id FROM executions WHERE phase = 'started' ORDER BY n

-- select_begun --
-- Executions that have begun and haven't ended. No arguments. Result: id.
SELECT id FROM executions WHERE phase = 'started' AND state <> 'PENDING' ORDER BY n

-- select_execution --
-- An execution as it was submitted. Argument: id. Result: n, intent.
SELECT n, intent FROM executions WHERE id = ?

-- select_changes --
-- Changes of an execution, the oldest first. Argument: n. Result: change.
SELECT change FROM changes WHERE n = ? ORDER BY id
