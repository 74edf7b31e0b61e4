"""Redis Sentinels: where the master is, as they know it.

All Sentinels are asked and the newest answer counts (the highest `config-epoch`): one that is cut
off from the others goes on naming a master that they have replaced. Whoever connects asks the
server itself as well (`ROLE`), because a master that was just demoted may still be named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock.errors import StoreError, StoreUnavailable
from penstock.stores.redis.connection.address import Address, Endpoints
from penstock.stores.redis.connection.link import Link
from penstock.stores.redis.timing import RedisTiming


class Sentinels:
    def __init__(self, endpoints: Endpoints, timing: RedisTiming) -> None:
        self._endpoints = endpoints
        self._timing = timing
        self._links = [Link(address, timing) for address in endpoints.sentinels]

    async def master(self) -> Address:
        """The master's address. Raises `StoreUnavailable` if no Sentinel knows it."""
        answers = await asyncio.gather(*map(self._ask, self._links))
        masters = [answer for answer in answers if answer is not None]
        if not masters:
            raise StoreUnavailable(f"no Sentinel answers for the master {self._endpoints}")
        _, host, port = max(masters)  # the one with the highest epoch
        return self._endpoints.servers[0].at(host, port)

    async def _ask(self, link: Link) -> tuple[int, str, int] | None:
        """A Sentinel's answer: its epoch, and the master's host and port; None without one."""
        try:
            async with asyncio.timeout(self._timing.answer_seconds):
                reply = await link.ask("SENTINEL", "MASTER", self._endpoints.master_name)
        except (StoreError, TimeoutError):
            return None
        fields = _fields(reply)
        return int(fields["config-epoch"]), fields["ip"], int(fields["port"])

    async def close(self) -> None:
        for link in self._links:
            await link.close()


def _fields(reply: Sequence[bytes]) -> dict[str, str]:
    texts = [text.decode() for text in reply]
    return dict(zip(texts[::2], texts[1::2], strict=True))
