-- Posts in PostgreSQL, and how they meet open waits.

-- lock_correlation --
-- Locks a correlation until the transaction ends. Argument: a number made of it.
SELECT pg_advisory_xact_lock(%s::bigint)

-- lock_execution --
-- Locks the row of an execution: its signals are numbered. Argument: n.
SELECT n FROM executions WHERE n = %s FOR UPDATE

-- insert_post --
-- Stores a post. Arguments: correlation, expires_at, post. Result: id.
INSERT INTO posts (correlation, expires_at, post) VALUES (%s, %s, %b) RETURNING id

-- delete_post --
-- Deletes a post that its receiver has got. Argument: id.
DELETE FROM posts WHERE id = %s

-- delete_expired --
-- Deletes posts that have expired. Arguments: time, limit.
DELETE FROM posts WHERE id IN (
  SELECT id FROM posts WHERE expires_at < %s ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED
)

-- select_waits --
-- Waits for signals with a correlation, the oldest first. Argument: correlation. Result: n, wait.
SELECT n, wait FROM waits JOIN executions USING (n)
WHERE correlation = %s AND kind = 'signal' AND phase = 'started' ORDER BY waits.id

-- select_posts --
-- Posts with a correlation that haven't expired, the oldest first. Arguments: correlation, time. Result: id, post.
SELECT id, post FROM posts WHERE correlation = %s AND expires_at >= %s ORDER BY id

-- select_delivered --
-- The signal that a post has become. Arguments: n, digest of the idempotency key.
SELECT number FROM signals WHERE n = %s AND idempotency_key = %b

-- next_number --
-- The number of an execution's next signal. Argument: n.
SELECT count(*) + 1 FROM signals WHERE n = %s

-- insert_signal --
-- Stores a signal. Arguments: n, number, time, name, correlation, sender, digest of the idempotency key, payload.
INSERT INTO signals (n, number, at, copied, name, correlation, sender, idempotency_key, payload)
VALUES (%s, %s, %s, false, %s, %s, %s, %b, %b)

-- delete_wait --
-- Closes a wait. Arguments: n, node.
DELETE FROM waits WHERE n = %s AND node_id = %s
