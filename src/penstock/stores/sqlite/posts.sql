-- Posts in the file, and how they meet open waits.

-- insert_post --
-- Stores a post. Arguments: correlation, expires_at, post.
INSERT INTO posts (correlation, expires_at, post) VALUES (?, ?, ?)

-- set_post --
-- Sets what a post is. Arguments: post, id.
UPDATE posts SET post = ? WHERE id = ?

-- delete_post --
-- Deletes a post that its receiver has got. Argument: id.
DELETE FROM posts WHERE id = ?

-- delete_expired --
-- Deletes posts that have expired. Arguments: time, limit.
DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE expires_at < ? ORDER BY expires_at LIMIT ?)

-- select_waits --
-- Waits for signals with a correlation, the oldest first. Argument: correlation. Result: n, wait.
SELECT n, wait FROM waits CROSS JOIN executions USING (n)
WHERE correlation = ? AND kind = 'signal' AND phase = 'started' ORDER BY waits.id

-- select_posts --
-- Posts with a correlation that haven't expired, the oldest first. Arguments: correlation, time. Result: id, post.
SELECT id, post FROM posts WHERE correlation = ? AND expires_at >= ? ORDER BY id

-- select_delivered --
-- The signal that a post has become. Arguments: n, idempotency key.
SELECT 1 FROM signals WHERE n = ? AND idempotency_key = ?

-- next_number --
-- The number of an execution's next signal. Argument: n.
SELECT count(*) + 1 FROM signals WHERE n = ?

-- insert_signal --
-- Stores a signal. Arguments: n, number, time, name, correlation, sender, idempotency key, payload.
INSERT INTO signals (n, number, at, name, correlation, sender, idempotency_key, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- delete_wait --
-- Closes a wait. Arguments: n, node.
DELETE FROM waits WHERE n = ? AND node_id = ?
