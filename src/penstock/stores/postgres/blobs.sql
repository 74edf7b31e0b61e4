-- Large values in PostgreSQL.

-- put_blob --
-- Stores a blob, or touches it. Arguments: key, data, seconds. A blob that was put in the last so many seconds isn't
-- touched, unless its data were in an object store until now.
INSERT INTO blobs (key, used_at, data) VALUES (%s, extract(epoch FROM clock_timestamp()), %b)
ON CONFLICT (key) DO UPDATE SET used_at = excluded.used_at,
    data = CASE WHEN octet_length(blobs.data) = 0 THEN excluded.data ELSE blobs.data END
  WHERE blobs.used_at < excluded.used_at - %s::float8
    OR (octet_length(blobs.data) = 0 AND octet_length(excluded.data) > 0)

-- select_blob --
-- The data of a blob. Argument: key.
SELECT data FROM blobs WHERE key = %s

-- delete_blob --
-- Deletes a blob. Argument: key.
DELETE FROM blobs WHERE key = %s
