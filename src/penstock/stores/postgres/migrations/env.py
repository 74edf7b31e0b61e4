"""The environment of migrations, which Alembic runs.

`migrating.migrate` passes the connection, on which it has begun a transaction.
"""

from __future__ import annotations

from alembic import context

from penstock.stores.postgres.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
