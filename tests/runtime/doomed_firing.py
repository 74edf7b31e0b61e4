"""A process that is killed between the transaction of a slot and the append of its start.

python -m tests.runtime.doomed_firing sqlite:///FILE
python -m tests.runtime.doomed_firing REDIS DATABASE
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from penstock import Engine
from penstock.config import Settings
from penstock.engine.events import AnyEvent, ExecutionStarted
from penstock.runtime import open_scaled, service_over
from penstock.service.scheduler import Scheduler

FLOW = {"name": "flow", "nodes": [{"id": "a", "handler": "noop"}]}
TICKING = {"workflow": "flow", "when": {"every_seconds": 1}, "overlap": "allow"}


def dying(append: Any) -> Any:
    async def append_or_die(events: Sequence[AnyEvent], *, own: bool = False) -> None:
        if any(isinstance(event, ExecutionStarted) for event in events):
            os.kill(os.getpid(), signal.SIGKILL)
        await append(events, own=own)

    return append_or_die


async def embedded(store: str) -> None:
    async with Engine(store) as engine:
        await engine.put_workflow(FLOW)
        hot = engine.stores.hot
        with patch.object(hot, "append", dying(hot.append)):
            await engine.put_schedule("ticking", TICKING)
            await asyncio.Event().wait()


async def scaled(settings: Settings) -> None:
    async with open_scaled(settings) as stores:
        service = service_over(stores, settings)
        await service.workflows.put(FLOW)
        scheduler = Scheduler(stores, service.firing, lambda: range(stores.hot.partitions))
        with patch.object(stores.hot, "append", dying(stores.hot.append)):
            await service.schedules.put("ticking", TICKING)
            await scheduler.run()


if __name__ == "__main__":
    address, *database = sys.argv[1:]
    if database:
        asyncio.run(scaled(Settings(store=address, database=database[0])))
    else:
        asyncio.run(embedded(address))
