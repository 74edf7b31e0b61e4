-- The embedded store: one file for what is active and what has ended.
--
-- executions  one row each. `n` is a number that this store gives, in order of creation (sqlite/numbers.py). `state` is
--             what users see: PENDING until the first commit. `phase` is what the store goes by (stores/phases.py):
--             `waiting` for one that waits for its trigger, `started` from the moment that it should run, `ended`.
--             `ended_at` is null while the execution is active. `intent` is the ExecutionRecord as it was submitted
--             (msgpack), `rest` what else is in the Intent, null if that is nothing (sql/intents.py), `labels` JSON,
--             `control_request` the last cancel, pause or resume that was asked for. What is large stands last.
--             Every index of executions ends in `n`, so that a page of a search is read from it and not sorted. Most
--             rows are PENDING and RUNNING for a moment: by_workflow leaves these out, and is written once per execution.
-- labels      one row per label, as it is compared in a search.
-- idempotency which execution a key has made.
-- changes     what each commit did to an execution (codec.Change): node records, outputs, history lines, logs. Appended,
--             never rewritten: an execution is the fold of its changes, and a finished one needs no copying.
--             One after another in the order of commits, whichever execution they are of: a commit for hundreds of
--             executions writes a few pages at the end of the table, and the index says where an execution's are.
--             `id` is the position in the feed of all executions.
-- timers      when an execution must be looked at; only those that have a timer.
-- forgotten   executions that retention has deleted and whose changes are still to go, a few at a time.
-- signals     messages to executions, numbered per execution; `payload` JSON.
-- waits       nodes that wait for somebody, over all executions; `wait` is a stores.waits.OpenWait (msgpack).
-- posts       signals to whoever waits for a correlation, until they expire; `post` is a stores.posts.Post (msgpack).
-- schedules   `schedule` is a stores.schedules.Schedule (msgpack); a write with another `revision` is refused.
-- slots       what has become of the slots of schedules; `at` is the moment of the slot.
-- hooks       addresses that others send requests to; `document` JSON, which names secrets and holds none.
-- deliveries  the newest of each hook; `request` is what is needed to deliver it again (msgpack), null once it is too
--             old. `delivery` is a stores.hooks.Delivery (msgpack).
-- hook_messages  messages that a hook has had; `message` is a digest of the sender's name for it. `answer` is null while
--             the one who claimed it is at work.
-- dead_letters  `dead_letter` is a DeadLetter (msgpack), `category` that of the last attempt's error, `closed` null or how
--             it was closed.
-- workflows   every version. A deleted one stays: executions are pinned to it. A document that was started inline is
--             `deleted` from the beginning, its content_hash begins with `inline:`: only its executions know of it.
-- reports     of each execution that has ended, what the views show of it (JSON, stores/reports.py).
-- aliases     `weights`: shares by version (JSON).
-- handlers    what workers have; `defaults` is a HandlerDefaults (msgpack; x'80' asks for nothing).
-- api_keys    `hash` of the secret part, `scopes` JSON.
-- audit       who did what; `detail` JSON.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS workflows (
  name TEXT NOT NULL, version INTEGER NOT NULL, content_hash TEXT NOT NULL, created_at REAL NOT NULL,
  deleted INTEGER NOT NULL DEFAULT 0, document BLOB NOT NULL, PRIMARY KEY (name, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS workflow_content ON workflows (name, content_hash);

CREATE TABLE IF NOT EXISTS aliases (
  name TEXT NOT NULL, alias TEXT NOT NULL, weights BLOB NOT NULL, PRIMARY KEY (name, alias)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS executions (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workflow TEXT NOT NULL, version INTEGER NOT NULL, phase TEXT NOT NULL,
  state TEXT NOT NULL, created_at REAL NOT NULL, ended_at REAL, control_request TEXT, retry_of TEXT, labels BLOB,
  intent BLOB NOT NULL, rest BLOB
);
CREATE INDEX IF NOT EXISTS by_state ON executions (phase, state);
CREATE INDEX IF NOT EXISTS by_workflow ON executions (workflow, state, n, version)
  WHERE phase <> 'started' OR state = 'PAUSED';
CREATE INDEX IF NOT EXISTS by_origin ON executions (retry_of) WHERE retry_of IS NOT NULL;

CREATE TABLE IF NOT EXISTS labels (
  key TEXT NOT NULL, value TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (key, value, n)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS idempotency (
  scope TEXT NOT NULL, key TEXT NOT NULL, execution_id TEXT NOT NULL, request_hash TEXT NOT NULL,
  created_at REAL NOT NULL, PRIMARY KEY (scope, key)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS changes (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, change BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS changes_of ON changes (n);

CREATE TABLE IF NOT EXISTS forgotten (n INTEGER PRIMARY KEY);

CREATE TABLE IF NOT EXISTS timers (n INTEGER PRIMARY KEY, wake_at REAL NOT NULL);

CREATE TABLE IF NOT EXISTS signals (
  n INTEGER NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, name TEXT NOT NULL, correlation TEXT,
  sender TEXT NOT NULL, idempotency_key TEXT, payload BLOB NOT NULL, PRIMARY KEY (n, number)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS waits (
  id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER NOT NULL, node_id TEXT NOT NULL, kind TEXT NOT NULL,
  correlation TEXT, wait BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS wait_of_node ON waits (n, node_id);
CREATE INDEX IF NOT EXISTS waits_by_kind ON waits (kind);
CREATE INDEX IF NOT EXISTS waits_by_correlation ON waits (correlation) WHERE correlation IS NOT NULL;

CREATE TABLE IF NOT EXISTS posts (
  id INTEGER PRIMARY KEY AUTOINCREMENT, correlation TEXT NOT NULL, expires_at REAL NOT NULL, post BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS posts_by_correlation ON posts (correlation);
CREATE INDEX IF NOT EXISTS posts_by_expiry ON posts (expires_at);

CREATE TABLE IF NOT EXISTS schedules (
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL, schedule BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS slots (
  schedule_id TEXT NOT NULL, slot TEXT NOT NULL, at REAL NOT NULL, recorded_at REAL NOT NULL, outcome TEXT NOT NULL,
  reason TEXT, execution_id TEXT, PRIMARY KEY (schedule_id, slot)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS slots_by_time ON slots (schedule_id, at, slot);
CREATE INDEX IF NOT EXISTS slots_by_record ON slots (recorded_at);

CREATE TABLE IF NOT EXISTS hooks (
  id TEXT PRIMARY KEY, created_at REAL NOT NULL, updated_at REAL NOT NULL, document BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, hook_id TEXT NOT NULL, at REAL NOT NULL, delivery BLOB NOT NULL, request BLOB
);
CREATE INDEX IF NOT EXISTS deliveries_of ON deliveries (hook_id);
CREATE INDEX IF NOT EXISTS deliveries_with_request ON deliveries (at) WHERE request IS NOT NULL;

CREATE TABLE IF NOT EXISTS hook_messages (
  hook_id TEXT NOT NULL, message BLOB NOT NULL, claimed_at REAL NOT NULL, answer BLOB, PRIMARY KEY (hook_id, message)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS hook_messages_by_time ON hook_messages (claimed_at);

CREATE TABLE IF NOT EXISTS dead_letters (
  id INTEGER PRIMARY KEY, n INTEGER NOT NULL, handler TEXT NOT NULL, category TEXT NOT NULL, closed TEXT,
  closed_at REAL, retried_as TEXT, dead_letter BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS dead_letters_of ON dead_letters (n);
CREATE INDEX IF NOT EXISTS open_dead_letters ON dead_letters (id) WHERE closed IS NULL;
CREATE INDEX IF NOT EXISTS dead_letters_by_handler ON dead_letters (handler);

CREATE TABLE IF NOT EXISTS handlers (name TEXT PRIMARY KEY, defaults BLOB NOT NULL DEFAULT x'80') WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS api_keys (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes BLOB NOT NULL, hash BLOB NOT NULL, created_at REAL NOT NULL,
  revoked_at REAL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS audit (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, key_id TEXT NOT NULL, key_name TEXT NOT NULL, action TEXT NOT NULL,
  object TEXT NOT NULL, address TEXT NOT NULL, status INTEGER NOT NULL, detail BLOB
);
CREATE INDEX IF NOT EXISTS audit_of ON audit (object);
CREATE INDEX IF NOT EXISTS audit_by_action ON audit (action);

CREATE TABLE IF NOT EXISTS reports (n INTEGER PRIMARY KEY, report TEXT NOT NULL);

-- Promised to users: docs/history.md. Columns may be added, none may change; so an execution that is about to begin is
-- RUNNING here, as it was before there was a phase.
CREATE VIEW IF NOT EXISTS penstock_executions AS
SELECT id AS execution_id, workflow, version,
  CASE WHEN phase = 'started' AND state = 'PENDING' THEN 'RUNNING' ELSE state END AS state,
  strftime('%Y-%m-%dT%H:%M:%fZ', created_at, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(report, '$.started_at'), 'unixepoch') AS started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', ended_at, 'unixepoch') AS finished_at,
  ended_at - created_at AS seconds, CAST(labels AS TEXT) AS labels, json_extract(report, '$.input') AS input,
  json_extract(report, '$.error_category') AS error_category, json_extract(report, '$.error_message') AS error_message,
  json_extract(report, '$.error_node') AS error_node, retry_of
FROM executions LEFT JOIN reports USING (n);

CREATE VIEW IF NOT EXISTS penstock_nodes AS
SELECT executions.id AS execution_id, workflow, version, node.key AS node_id, json_extract(node.value, '$.state') AS state,
  json_extract(node.value, '$.attempts') AS attempts,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(node.value, '$.queued_at'), 'unixepoch') AS queued_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(node.value, '$.started_at'), 'unixepoch') AS started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(node.value, '$.finished_at'), 'unixepoch') AS finished_at,
  json_extract(node.value, '$.finished_at') - json_extract(node.value, '$.started_at') AS seconds,
  json_extract(node.value, '$.reason') AS reason, json_extract(node.value, '$.worker_id') AS worker_id,
  json_extract(node.value, '$.error_category') AS error_category, json_extract(node.value, '$.error_message') AS error_message
FROM executions JOIN reports USING (n), json_each(report, '$.nodes') AS node;
