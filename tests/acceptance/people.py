"""People who look at what waits for somebody, and answer it: until everything has ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from penstock.errors import PenstockError
from penstock.service import Service
from penstock.service.approvals import Decider

LOOK_SECONDS = 0.1
PAGE = 500
ADA = Decider("Ada")


class People:
    def __init__(self, service: Service) -> None:
        self._service = service
        self.signals = 0
        self.decisions = 0

    async def answer_for_ever(self) -> None:
        """What a fault keeps from being answered is answered when they look again."""
        while True:
            for answer in (self._send_signals, self._decide):
                with contextlib.suppress(PenstockError):
                    await answer()
            await asyncio.sleep(LOOK_SECONDS)

    async def _send_signals(self) -> None:
        waits, _ = await self._service.signals.waits(None, None, limit=PAGE)
        for wait in waits:
            # the key makes a request that wasn't answered the same one
            with contextlib.suppress(PenstockError):
                await self._service.signals.send(
                    wait.execution_id,
                    wait.names[0],
                    wait.node_id,
                    correlation=wait.correlation,
                    idempotency_key=wait.node_id,
                )
                self.signals += 1

    async def _decide(self) -> None:
        items, _ = await self._service.approvals.inbox(ADA, limit=PAGE)
        for item in items:
            with contextlib.suppress(PenstockError):
                await self._service.approvals.decide(
                    item.execution_id, item.node_id, "approved", ADA
                )
                self.decisions += 1


@contextlib.asynccontextmanager
async def people(service: Service) -> AsyncIterator[People]:
    """People who are there while a `with` lasts."""
    present = People(service)
    answering = asyncio.create_task(present.answer_for_ever())
    try:
        yield present
    finally:
        answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering
