r"""The cold store on PostgreSQL.

It has definitions, intents, archives, checkpoints, dead letters, API keys and the audit log.

At run time statements are plain SQL through psycopg; SQLAlchemy isn't even imported. Texts that
users choose freely may hold U+0000, which text in PostgreSQL can't, or be longer than an index
takes: labels and idempotency keys are looked up by a digest, JSON is kept as text (not `jsonb`,
which refuses `\u0000`), and the rest goes through `texts.escaped`.

- `cold`: `PostgresColdStore`, which puts the following together.
- `cold_tier`: what tiering does with it.
- `database`: connections.
- `failures`: what psycopg's errors mean to callers.
- `texts`: any text in columns that can't hold U+0000; digests.
- `definitions`: workflow versions, aliases, known handlers.
- `executions`: intents, control requests, and what the database has of executions.
- `intents`: recording intents, by COPY.
- `copying`: archives and checkpoints, as they come from the hot store.
- `children`: executions that others have started, as both ends look at them.
- `claims`: who runs a partition, and on which Redis server.
- `searching`: one page of a search.
- `counting`: counts.
- `signals`: signals to executions.
- `waits`: nodes that wait for somebody.
- `posts`: signals to whoever waits for a correlation.
- `dead_letters`: dead letters.
- `api_keys`: API keys.
- `audit_log`: the audit log.
- `blobs`: large values in a table.
- `retention`: deletes what has ended long ago, while everything runs.
- `purging`: `penstock purge`.
- `tables`: the schema that all migrations together lead to.
- `schema`: which schema this version works with.
- `migrating`: makes and updates the schema, with Alembic.
- `migrations`: the steps.
"""
