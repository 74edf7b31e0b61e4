-- What is written with new executions, whose rows come by COPY. Arguments are arrays of the same length.

-- insert_labels --
-- Labels. Arguments: digest, execution id.
INSERT INTO labels (label, n)
SELECT label, n FROM unnest(%b::bytea[], %b::text[]) AS new (label, id)
JOIN executions USING (id)

-- insert_uses --
-- Which blobs executions use. Arguments: key of the blob, execution id.
INSERT INTO blob_uses (key, n)
SELECT key, n FROM unnest(%b::text[], %b::text[]) AS new (key, id)
JOIN executions USING (id) ON CONFLICT DO NOTHING

-- touch_blobs --
-- Touches blobs. Argument: keys.
-- Touched, so that a purge that has just selected them as unused checks again.
UPDATE blobs SET used_at = extract(epoch FROM clock_timestamp()) WHERE key = ANY(%b)

-- claim_keys --
-- Uses of idempotency keys that are new. Arguments: digest, execution id, request hash, created_at.
-- In the order of keys, so that two calls with the same keys wait for each other and don't deadlock.
INSERT INTO idempotency (key, execution_id, request_hash, created_at)
SELECT * FROM unnest(%b::bytea[], %b::text[], %b::text[], %b::float8[]) AS new (key)
ORDER BY key ON CONFLICT DO NOTHING

-- select_keys --
-- Uses of idempotency keys, which are locked. Argument: digests. Result: digest, execution id, request hash,
-- created_at.
SELECT key, execution_id, request_hash, created_at FROM idempotency
WHERE key = ANY(%b) ORDER BY key FOR UPDATE

-- renew_keys --
-- Uses of idempotency keys that had expired. Arguments: as claim_keys.
UPDATE idempotency SET execution_id = new.execution_id, request_hash = new.request_hash,
  created_at = new.created_at
FROM unnest(%b::bytea[], %b::text[], %b::text[], %b::float8[])
  AS new (key, execution_id, request_hash, created_at)
WHERE idempotency.key = new.key
