"""Claims of partitions: who runs a partition, and on which Redis server.

A Redis whose replica was promoted may live on, and some roles may still be connected to it. Then
each partition has a lease in both, and each owner takes the other's progress for a Redis that went
back in time. So an owner claims its partition here too, and only one at a time can begin a rebuild.
A claim on the same server as the last one succeeds at once (there the lease says who may). On
another server it succeeds only if the last holder is the same orchestrator, has released its claim,
or hasn't renewed it for a while.
"""

from __future__ import annotations

from penstock.errors import Fenced
from penstock.stores.postgres.database import Database
from penstock.stores.sql.statements import statements_beside
from penstock.stores.tiering import CLAIM_SECONDS, Claim

SQL = statements_beside(__file__)


class PostgresClaims:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, partition: int, holder: str, server_id: str) -> Claim | None:
        values = {
            "partition": partition,
            "holder": holder,
            "server": server_id,
            "seconds": CLAIM_SECONDS,
        }
        # if it is run twice, the later term counts
        rows = await self._database.rows(SQL.claim, values)
        return Claim(*rows[0]) if rows else None

    async def renew_claim(self, partition: int, term: int, server_id: str) -> bool:
        return await self._database.change(SQL.renew_claim, (server_id, partition, term)) > 0

    async def release_claim(self, partition: int, term: int) -> None:
        await self._database.change(SQL.release_claim, (partition, term))

    async def begin_rebuild(self, partition: int, term: int, commit_number: int) -> int:
        rows = await self._database.rows(SQL.begin_rebuild, (commit_number, partition, term))
        if not rows:
            raise Fenced(
                f"partition {partition} was claimed by another owner; it isn't rebuilt here"
            )
        return int(rows[0][0])
