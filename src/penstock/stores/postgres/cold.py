"""The cold store on PostgreSQL."""

from __future__ import annotations

from penstock.errors import SchemaMismatch, SettingsError
from penstock.stores.object_blobs import ObjectBlobs
from penstock.stores.postgres.api_keys import PostgresApiKeys
from penstock.stores.postgres.audit_log import PostgresAuditLog
from penstock.stores.postgres.claims import PostgresClaims
from penstock.stores.postgres.copying import PostgresCopies
from penstock.stores.postgres.counting import PostgresCounts
from penstock.stores.postgres.database import Database, DatabaseTiming
from penstock.stores.postgres.dead_letters import PostgresDeadLetters
from penstock.stores.postgres.definitions import PostgresDefinitions
from penstock.stores.postgres.executions import PostgresExecutions
from penstock.stores.postgres.posts import PostgresPosts
from penstock.stores.postgres.schema import MIGRATE, VERSION_TABLE, check_schema
from penstock.stores.postgres.signals import PostgresSignals
from penstock.stores.postgres.waits import PostgresWaits


class PostgresColdStore:
    """A `stores.cold.ColdStore` without the commit feed, which is in Redis."""

    def __init__(
        self,
        database_url: str,
        *,
        partitions: int | None = None,
        objects: ObjectBlobs | None = None,
        timing: DatabaseTiming | None = None,
    ) -> None:
        """`partitions`: how many there should be; None takes what the database has.

        `objects`: where large values are, if not in the database.
        """
        database = Database(database_url, timing)
        self.objects = objects
        self.database = database
        self._wanted = partitions
        self.store_id = ""
        self.definitions = PostgresDefinitions(database)
        self.executions = PostgresExecutions(database)
        self.signals = PostgresSignals(database)
        self.waits = PostgresWaits(database)
        self.posts = PostgresPosts(database)
        self.dead_letters = PostgresDeadLetters(database)
        self.counts = PostgresCounts(database)
        self.api_keys = PostgresApiKeys(database)
        self.audit_log = PostgresAuditLog(database)
        self.copies = PostgresCopies(database)
        self.claims = PostgresClaims(database)

    @property
    def partitions(self) -> int:
        """The number of partitions; known once the store has been opened."""
        return self.executions.partitions

    async def open(self) -> None:
        """Connect, and check the schema.

        Raises `StoreUnavailable`, `SchemaMismatch`, or `SettingsError` for a wrong number of
        partitions.
        """
        where = self.database.where
        try:
            rows = await self.database.rows(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608
        except SchemaMismatch:  # there is no such table
            rows = []
        check_schema(rows[0][0] if rows else None, where)

        meta: dict[str, str] = dict(await self.database.rows("SELECT key, value FROM meta"))
        if not meta.keys() >= {"store_id", "partitions"}:
            raise SchemaMismatch(f"{where} has been emptied; {MIGRATE}")
        self.store_id = meta["store_id"]
        self.executions.partitions = int(meta["partitions"])
        self.copies.partitions = self.executions.partitions
        check_partitions(self._wanted, self.partitions, where)

    async def close(self) -> None:
        await self.database.close()


def check_partitions(setting: int | None, stored: int, where: str) -> None:
    """Raises `SettingsError` if the setting isn't the database's number of partitions."""
    if setting is not None and setting != stored:
        raise SettingsError(
            f"{where} was made with {stored} partitions, which can't be changed, "
            f"and the setting says {setting}; "
            "leave PENSTOCK_PARTITIONS out, or use another database"
        )
