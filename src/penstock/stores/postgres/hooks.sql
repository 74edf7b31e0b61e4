-- Hooks, deliveries and messages in PostgreSQL.

-- put_hook --
-- Stores a hook, also in place of the one with the same id. Arguments: id, document, created_at, updated_at.
-- Result: whether it is new.
INSERT INTO hooks (id, document, created_at, updated_at) VALUES (%s, %b, %s, %s)
ON CONFLICT (id) DO UPDATE SET document = excluded.document, updated_at = excluded.updated_at
RETURNING xmax = 0

-- select_hook --
-- A hook. Argument: id. Result: id, document, created_at, updated_at.
SELECT id, document, created_at, updated_at FROM hooks WHERE id = %s

-- select_hooks --
-- All hooks. No arguments. Result: a row for each, by id.
SELECT id, document, created_at, updated_at FROM hooks ORDER BY id

-- delete_hook --
-- Deletes a hook. Argument: id. Result: one changed row, or none.
DELETE FROM hooks WHERE id = %s

-- delete_deliveries --
-- Deletes the deliveries of a hook. Argument: hook.
DELETE FROM deliveries WHERE hook_id = %s

-- delete_messages --
-- Deletes the messages of a hook. Argument: hook.
DELETE FROM hook_messages WHERE hook_id = %s

-- claim_message --
-- Claims a message that is free: new, or claimed before these times. Two that claim it at once get it one after the other.
-- Arguments: hook, message, time, the time for one without an answer, the time for one with. Result: a row if it is claimed.
INSERT INTO hook_messages (hook_id, message, claimed_at) VALUES (%s, %b, %s)
ON CONFLICT (hook_id, message) DO UPDATE SET claimed_at = excluded.claimed_at, answer = NULL
WHERE hook_messages.claimed_at < CASE WHEN hook_messages.answer IS NULL THEN %s::float8 ELSE %s::float8 END
RETURNING 1

-- select_answer --
-- The answer of a message. Arguments: hook, message. Result: answer, null while there is none.
SELECT answer FROM hook_messages WHERE hook_id = %s AND message = %b

-- release_message --
-- Gives a claim back. Arguments: hook, message, the time of the claim.
DELETE FROM hook_messages WHERE hook_id = %s AND message = %b AND claimed_at = %s AND answer IS NULL

-- answer_message --
-- Stores the answer of a message. Arguments: answer, hook, message.
UPDATE hook_messages SET answer = %b WHERE hook_id = %s AND message = %b

-- insert_delivery --
-- Stores a delivery of a hook that exists. Arguments: time, request, delivery, hook. Result: id.
INSERT INTO deliveries (hook_id, at, request, delivery)
SELECT id, %s::float8, %b::bytea, %b::bytea FROM hooks WHERE id = %s RETURNING id

-- trim_deliveries --
-- Deletes all but the newest deliveries of a hook. Arguments: hook, hook, how many stay.
DELETE FROM deliveries WHERE hook_id = %s AND id <= (
  SELECT id FROM deliveries WHERE hook_id = %s ORDER BY id DESC LIMIT 1 OFFSET %s
)

-- select_deliveries --
-- Deliveries of a hook, the newest first. Arguments: hook, the id that they are before, limit.
-- Result: id, request, delivery.
SELECT id, request, delivery FROM deliveries WHERE hook_id = %s AND id < %s::int8 ORDER BY id DESC LIMIT %s

-- select_delivery --
-- A delivery. Arguments: hook, id. Result: id, request, delivery.
SELECT id, request, delivery FROM deliveries WHERE hook_id = %s AND id = %s::int8

-- forget_requests --
-- Deletes old requests. Argument: time. Result: the number of changed rows.
UPDATE deliveries SET request = NULL WHERE request IS NOT NULL AND at < %s

-- forget_strays --
-- Deletes deliveries that were written while their hook was being deleted. No arguments.
DELETE FROM deliveries WHERE NOT EXISTS (SELECT 1 FROM hooks WHERE hooks.id = deliveries.hook_id)

-- forget_messages --
-- Deletes old messages. Argument: time. Result: the number of deleted rows.
DELETE FROM hook_messages WHERE claimed_at < %s
