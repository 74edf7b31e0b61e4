-- Signals in the file.

-- select_receiver --
-- What decides about a signal to an execution. Argument: id. Result: n, phase, state, number of its signals.
SELECT n, phase, state, (SELECT count(*) FROM signals WHERE signals.n = executions.n) FROM executions WHERE id = ?

-- select_known --
-- The signal of a request that was made before. Arguments: n, idempotency key, time. Result: number, name, payload.
SELECT number, name, payload FROM signals WHERE n = ? AND idempotency_key = ? AND at > ?

-- insert_signal --
-- Stores a signal. Arguments: n, number, time, name, correlation, sender, idempotency key, payload.
INSERT INTO signals (n, number, at, name, correlation, sender, idempotency_key, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- select_signals --
-- Signals of an execution, by number. Argument: id. Result: number, name, payload, correlation, sender, time.
SELECT number, name, payload, correlation, sender, at FROM signals CROSS JOIN executions USING (n)
WHERE id = ? ORDER BY number

-- select_named --
-- Signals of an execution with a name, by number. Arguments: n, name. Result: as select_signals.
SELECT number, name, payload, correlation, sender, at FROM signals WHERE n = ? AND name = ? ORDER BY number
