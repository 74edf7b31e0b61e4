-- API keys in the file.

-- put_key --
-- Stores an API key. Completed by `VALUES` and the row (writer.insert_many).
INSERT OR REPLACE INTO api_keys (id, name, scopes, hash, created_at, revoked_at)

-- select_keys --
-- All API keys. No arguments. Result: a row for each, in order of creation.
SELECT id, name, scopes, hash, created_at, revoked_at FROM api_keys
ORDER BY created_at, id

-- revoke_key --
-- Revokes an API key. Arguments: time, id. Result: one changed row, or none if it was revoked.
UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL
