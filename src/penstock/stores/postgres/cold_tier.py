"""The cold side of tiering: what the owner of a partition does with PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.events import SignalReceived
from penstock.stores.base import WorkflowVersion
from penstock.stores.postgres.children import PostgresChildren
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.tiering import Claim, Copy, EndedChild, Unfinished, Written
from penstock.stores.waits import WaitChange


class PostgresColdTier:
    def __init__(self, store: PostgresColdStore) -> None:
        self._definitions = store.definitions
        self._copies = store.copies
        self._claims = store.claims
        self._waits = store.waits
        self._children = PostgresChildren(store.database)
        self.store_id = store.store_id

    async def put_copies(
        self,
        partition: int,
        commit_number: int,
        copies: Sequence[Copy],
        *,
        cold_number: int = 0,
        term: int | None = None,
    ) -> Written:
        return await self._copies.put_copies(
            partition, commit_number, copies, cold_number=cold_number, term=term
        )

    async def unfinished(
        self, partition: int, after: str = "", limit: int = 500
    ) -> list[Unfinished]:
        return await self._copies.unfinished(partition, after, limit)

    async def put_waits(self, changes: Sequence[WaitChange]) -> list[SignalReceived]:
        return await self._waits.put(changes)

    async def ended_children(self, partition: int, seconds: float) -> list[EndedChild]:
        return await self._children.ended(partition, seconds)

    async def children_left_behind(self, partition: int) -> list[str]:
        return await self._children.left_behind(partition)

    async def put_version_back(self, version: WorkflowVersion) -> bool:
        return await self._definitions.put_version_back(version)

    async def claim(self, partition: int, holder: str, server_id: str) -> Claim | None:
        return await self._claims.claim(partition, holder, server_id)

    async def renew_claim(self, partition: int, term: int, server_id: str) -> bool:
        return await self._claims.renew_claim(partition, term, server_id)

    async def release_claim(self, partition: int, term: int) -> None:
        await self._claims.release_claim(partition, term)

    async def begin_rebuild(self, partition: int, term: int, commit_number: int) -> int:
        return await self._claims.begin_rebuild(partition, term, commit_number)
