"""The cold store on PostgreSQL."""

from __future__ import annotations

from penstock.errors import SchemaMismatch, SettingsError
from penstock.stores.object_blobs import ObjectBlobs
from penstock.stores.postgres.api_keys import PostgresApiKeys
from penstock.stores.postgres.audit_log import PostgresAuditLog
from penstock.stores.postgres.claims import PostgresClaims
from penstock.stores.postgres.copying import PostgresCopies
from penstock.stores.postgres.counting import PostgresCounts
from penstock.stores.postgres.database import Database
from penstock.stores.postgres.dead_letters import PostgresDeadLetters
from penstock.stores.postgres.definitions import PostgresDefinitions
from penstock.stores.postgres.executions import PostgresExecutions
from penstock.stores.postgres.schema import MIGRATE, VERSION_TABLE, check_schema


class PostgresColdStore(
    PostgresDefinitions,
    PostgresExecutions,
    PostgresDeadLetters,
    PostgresCounts,
    PostgresApiKeys,
    PostgresAuditLog,
    PostgresCopies,
    PostgresClaims,
):
    """`penstock.stores.cold.ColdStore` without the feed, which is Redis's, and `tiering.ColdTier`."""

    def __init__(
        self,
        database_url: str,
        *,
        partitions: int | None = None,
        objects: ObjectBlobs | None = None,
    ) -> None:
        """`partitions`: how many there should be; None takes what the database has.

        `objects`: where large values are, if not in the database.
        """
        self.objects = objects
        self.database = Database(database_url)
        self._wanted = partitions
        self.store_id = ""
        for part in (
            PostgresDefinitions,
            PostgresExecutions,
            PostgresDeadLetters,
            PostgresCounts,
            PostgresApiKeys,
            PostgresAuditLog,
            PostgresCopies,
            PostgresClaims,
        ):
            part.__init__(self, self.database)

    async def open(self) -> None:
        """Raises `StoreUnavailable`, `SchemaMismatch`, or `SettingsError` for a wrong number of partitions."""
        where = self.database.where
        try:
            found = await self.database.rows(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 -- our own name
        except SchemaMismatch:  # there is no such table
            found = []
        check_schema(found[0][0] if found else None, where)
        meta: dict[str, str] = dict(await self.database.rows("SELECT key, value FROM meta"))
        if not meta.keys() >= {"store_id", "partitions"}:
            raise SchemaMismatch(f"{where} has been emptied; {MIGRATE}")
        self.store_id, self.partitions = meta["store_id"], int(meta["partitions"])
        check_partitions(self._wanted, self.partitions, where)

    async def close(self) -> None:
        await self.database.close()


def check_partitions(wanted: int | None, found: int, where: str) -> None:
    if wanted is not None and wanted != found:
        raise SettingsError(
            f"{where} was made with {found} partitions, which can't be changed, and the setting says {wanted}; "
            "leave PENSTOCK_PARTITIONS out, or use another database"
        )
