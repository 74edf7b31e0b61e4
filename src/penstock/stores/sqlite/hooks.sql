-- Hooks, deliveries and messages in the file.

-- put_hook --
-- Stores a hook, also in place of the one with the same id. Arguments: id, document, created_at, updated_at.
INSERT INTO hooks (id, document, created_at, updated_at) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET document = excluded.document, updated_at = excluded.updated_at

-- select_hook --
-- A hook. Argument: id. Result: id, document, created_at, updated_at.
SELECT id, document, created_at, updated_at FROM hooks WHERE id = ?

-- select_hooks --
-- All hooks. No arguments. Result: a row for each, by id.
SELECT id, document, created_at, updated_at FROM hooks ORDER BY id

-- delete_hook --
-- Deletes a hook. Argument: id. Result: one changed row, or none.
DELETE FROM hooks WHERE id = ?

-- delete_deliveries --
-- Deletes the deliveries of a hook. Argument: hook.
DELETE FROM deliveries WHERE hook_id = ?

-- delete_messages --
-- Deletes the messages of a hook. Argument: hook.
DELETE FROM hook_messages WHERE hook_id = ?

-- select_message --
-- What is known of a message. Arguments: hook, message. Result: claimed_at, answer.
SELECT claimed_at, answer FROM hook_messages WHERE hook_id = ? AND message = ?

-- claim_message --
-- Claims a message that is free. Arguments: hook, message, time.
INSERT OR REPLACE INTO hook_messages (hook_id, message, claimed_at, answer) VALUES (?, ?, ?, NULL)

-- release_message --
-- Gives a claim back. Arguments: hook, message, the time of the claim.
DELETE FROM hook_messages WHERE hook_id = ? AND message = ? AND claimed_at = ? AND answer IS NULL

-- answer_message --
-- Stores the answer of a message. Arguments: answer, hook, message.
UPDATE hook_messages SET answer = ? WHERE hook_id = ? AND message = ?

-- insert_delivery --
-- Stores a delivery. Arguments: hook, time, request, delivery.
INSERT INTO deliveries (hook_id, at, request, delivery) VALUES (?, ?, ?, ?)

-- trim_deliveries --
-- Deletes all but the newest deliveries of a hook. Arguments: hook, hook, how many stay.
DELETE FROM deliveries WHERE hook_id = ? AND id <= (
  SELECT id FROM deliveries WHERE hook_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?
)

-- select_deliveries --
-- Deliveries of a hook, the newest first. Arguments: hook, the id that they are before, limit.
-- Result: id, request, delivery.
SELECT id, request, delivery FROM deliveries WHERE hook_id = ? AND id < ? ORDER BY id DESC LIMIT ?

-- select_delivery --
-- A delivery. Arguments: hook, id. Result: id, request, delivery.
SELECT id, request, delivery FROM deliveries WHERE hook_id = ? AND id = ?

-- forget_requests --
-- Deletes old requests. Argument: time. Result: the number of changed rows.
UPDATE deliveries SET request = NULL WHERE request IS NOT NULL AND at < ?

-- forget_messages --
-- Deletes old messages. Argument: time. Result: the number of deleted rows.
DELETE FROM hook_messages WHERE claimed_at < ?
