-- Signals in PostgreSQL.

-- select_known --
-- The signal of a request that was made before. Arguments: n, digest of the idempotency key, time. Result: number,
-- name, payload.
SELECT number, name, payload FROM signals WHERE n = %s AND idempotency_key = %b AND at > %s

-- count_signals --
-- The number of an execution's signals. Argument: n.
SELECT count(*) FROM signals WHERE n = %s

-- insert_signal --
-- Stores a signal. Arguments: n, number, time, name, correlation, sender, digest of the idempotency key, payload.
INSERT INTO signals (n, number, at, copied, name, correlation, sender, idempotency_key, payload)
VALUES (%s, %s, %s, false, %s, %s, %s, %b, %b)

-- select_signals --
-- Signals of executions, by number. Argument: ids. Result: id, number, name, payload, correlation, sender, time.
SELECT id, number, name, payload, correlation, sender, at FROM signals JOIN executions USING (n)
WHERE id = ANY(%s) ORDER BY n, number

-- select_undelivered --
-- Signals that no copy has, of executions that haven't ended. Argument: partition. Result: as select_signals.
SELECT id, number, name, payload, correlation, sender, at FROM signals JOIN executions USING (n)
WHERE NOT copied AND partition = %s AND phase = 'started' ORDER BY n, number

-- select_uncopied --
-- Signals of executions that no copy has. Argument: ids. Result: id, number.
SELECT id, number FROM signals JOIN executions USING (n) WHERE id = ANY(%b) AND NOT copied

-- mark_copied --
-- Notes that copies have signals. Arguments, arrays of the same length: id, number.
UPDATE signals SET copied = true FROM unnest(%b::text[], %b::int4[]) AS copy (id, number), executions
WHERE executions.id = copy.id AND signals.n = executions.n AND signals.number = copy.number

-- select_named --
-- Signals of an execution with a name, by number. Arguments: n, name. Result: number, name, payload, correlation,
-- sender, time.
SELECT number, name, payload, correlation, sender, at FROM signals WHERE n = %s AND name = %s ORDER BY number
