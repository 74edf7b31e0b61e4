-- New executions. `insert_…` and `put_…` are completed by `VALUES` and the rows (writer.insert_many).

-- insert_executions --
-- Rows of new executions.
INSERT INTO executions
(n, id, workflow, version, phase, state, created_at, retry_of, labels, intent, rest)

-- insert_labels --
-- Labels of new executions.
INSERT INTO labels (key, value, n)

-- put_keys --
-- Uses of idempotency keys, also in place of those that have expired.
INSERT OR REPLACE INTO idempotency (scope, key, execution_id, request_hash, created_at)
