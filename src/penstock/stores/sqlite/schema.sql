-- The embedded store: one file for what is active and what has ended.
--
-- executions  one row each. `n` is a number that this store gives, in order of creation; `ended_at` is null while the
--             execution is active, and the partial index holds just those. `intent` is the ExecutionRecord as it was
--             submitted (msgpack), `wish` the last cancel, pause or resume that was asked for.
-- changes     what each commit did to an execution (codec.Change): node records, outputs, history lines, logs. Appended,
--             never rewritten: an execution is the fold of its changes, and a finished one needs no copying.
--             One after another in the order of commits, whichever execution they are of: a commit for hundreds of
--             executions writes a few pages at the end of the table, and the index says where an execution's are.
-- timers      when an execution must be looked at; only those that have a timer.
-- letters     dead letters (msgpack).
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS workflows (
  name TEXT NOT NULL, version INTEGER NOT NULL, content_hash TEXT NOT NULL, document BLOB NOT NULL,
  created_at REAL NOT NULL, PRIMARY KEY (name, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS workflow_content ON workflows (name, content_hash);

CREATE TABLE IF NOT EXISTS executions (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workflow TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL,
  created_at REAL NOT NULL, ended_at REAL, intent BLOB NOT NULL, labels BLOB, idempotency_key TEXT, request_hash TEXT,
  retry_of TEXT, wish TEXT
);
CREATE INDEX IF NOT EXISTS active_executions ON executions (n) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS idempotency_keys ON executions (idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE IF NOT EXISTS changes (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, change BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS changes_of ON changes (n);

CREATE TABLE IF NOT EXISTS timers (n INTEGER PRIMARY KEY, wake_at REAL NOT NULL);

CREATE TABLE IF NOT EXISTS letters (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, letter BLOB NOT NULL);

CREATE TABLE IF NOT EXISTS handlers (name TEXT PRIMARY KEY) WITHOUT ROWID;
