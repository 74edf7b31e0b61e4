-- API keys in PostgreSQL.

-- put_key --
-- Stores an API key, also in place of the one with the same id. Arguments: id, name, scopes, hash, created_at,
-- revoked_at.
INSERT INTO api_keys (id, name, scopes, hash, created_at, revoked_at)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET
  name = excluded.name, scopes = excluded.scopes, hash = excluded.hash,
  created_at = excluded.created_at, revoked_at = excluded.revoked_at

-- select_keys --
-- All API keys. No arguments. Result: a row for each, in order of creation.
SELECT id, name, scopes, hash, created_at, revoked_at FROM api_keys ORDER BY created_at, id

-- revoke_key --
-- Revokes an API key. Arguments: time, id. Result: one changed row, or none if it was revoked.
UPDATE api_keys SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL
