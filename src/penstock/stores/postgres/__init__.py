r"""The cold store on PostgreSQL.

It has definitions, intents, archives, checkpoints, dead letters, API keys and the audit log.

`migrating.migrate` creates and updates the schema (with Alembic; `tables.py` is the result). At run
time statements are plain SQL through psycopg; SQLAlchemy isn't even imported. Texts that users
choose freely may contain U+0000, which PostgreSQL's text can't hold, or be longer than an index
takes. So labels and idempotency keys are looked up by a digest, JSON is stored as text (not
`jsonb`, which refuses `\u0000`), and the rest goes through `texts.escaped`.
"""
