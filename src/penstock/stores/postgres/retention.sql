-- Deleting what is old. Which executions may go is put together in retention.py.

-- delete_labels --
-- Deletes labels. Arguments, arrays of the same length: digest, n.
DELETE FROM labels USING unnest(%b::bytea[], %b::int8[]) AS old (label, n)
WHERE labels.label = old.label AND labels.n = old.n

-- delete_segments --
-- Deletes the changes of executions. Argument: numbers.
DELETE FROM segments WHERE n = ANY(%b)

-- delete_reports --
-- Deletes the reports of executions. Argument: numbers.
DELETE FROM reports WHERE n = ANY(%b)

-- delete_signals --
-- Deletes the signals of executions. Argument: numbers.
DELETE FROM signals WHERE n = ANY(%b)

-- delete_waits --
-- Deletes the waits of executions. Argument: numbers.
DELETE FROM waits WHERE n = ANY(%b)

-- delete_dead_letters --
-- Deletes the dead letters of executions. Argument: numbers. Result: the number of deleted rows.
DELETE FROM dead_letters WHERE n = ANY(%b)

-- delete_uses --
-- Deletes which blobs executions use. Argument: numbers. Result: key of the blob.
DELETE FROM blob_uses WHERE n = ANY(%b) RETURNING key

-- delete_executions --
-- Deletes the rows of executions. Argument: numbers. Result: the number of deleted rows.
DELETE FROM executions WHERE n = ANY(%b)

-- select_oldest_started --
-- When the oldest execution that should run was created. No arguments. Result: a time or null.
SELECT min(created_at) FROM executions WHERE phase = 'started'

-- delete_blobs --
-- Deletes blobs that nothing uses. Arguments: keys, the time before which they were last put. Result: key, bytes.
DELETE FROM blobs WHERE key = ANY(%b) AND used_at < %s
  AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.key = blobs.key)
RETURNING key, octet_length(data)

-- select_strays --
-- Blobs that nothing uses. Arguments: the time before which they were last put, limit. Result: key.
SELECT key FROM blobs WHERE used_at < %s AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.key =
blobs.key) LIMIT %s

-- delete_keys --
-- Deletes old idempotency keys. Arguments: time, limit. Result: the number of deleted rows.
DELETE FROM idempotency
WHERE key IN (SELECT key FROM idempotency WHERE created_at < %s LIMIT %s)
