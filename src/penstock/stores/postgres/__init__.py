r"""The cold store on PostgreSQL: definitions, intents, archives and copies of what runs, dead letters, keys, audit.

`migrating.migrate` makes and updates the schema (Alembic; `tables.py` is what it leads to). At run time statements are
plain SQL through psycopg; SQLAlchemy isn't even imported. Texts that users choose freely may hold U+0000, which text in
PostgreSQL can't, or be longer than an index takes: labels and idempotency keys are looked up by a digest, JSON is kept
as text (not `jsonb`, which refuses `\u0000`), and the rest goes through `texts.escaped`.
"""
