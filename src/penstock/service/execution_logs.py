"""The logs of a whole execution: of all its nodes and attempts, in the order of their starts.

They are read in pages: an execution may have thousands of nodes. A page ends after `PAGE_BYTES`
bytes of text, or after the number of logs that was asked for.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.engine.states import NodeState
from penstock.service.executions import Executions
from penstock.stores.base import Stored
from penstock.views.executions import ExecutionLogItem

PAGE_BYTES = 1024 * 1024
LIVE_MAX = 20
"""Running nodes of which the log so far is read for one page."""


class LogPage(NamedTuple):
    logs: list[ExecutionLogItem]
    next_position: int | None
    """Where the next page begins; None: there is none."""


class ExecutionLogs:
    """Reads the logs of executions."""

    def __init__(self, executions: Executions) -> None:
        self._executions = executions

    async def page(self, execution_id: str, position: int, limit: int) -> LogPage:
        """The logs from a position on. Logs of running attempts are on the last page."""
        stored = await self._executions.stored(execution_id)
        ordered = in_order(stored)
        logs: list[ExecutionLogItem] = []
        size = 0
        for node_id, attempt, text in ordered[position : position + limit]:
            if logs and size + len(text) > PAGE_BYTES:
                break
            item = ExecutionLogItem(node_id=node_id, attempt=attempt, text=text, live=False)
            logs.append(item)
            size += len(text)

        end = position + len(logs)
        if end < len(ordered):
            return LogPage(logs, end)
        return LogPage([*logs, *await self._live(stored)], None)

    async def _live(self, stored: Stored) -> list[ExecutionLogItem]:
        recorded = {(node_id, attempt) for node_id, attempt, _ in stored.logs}
        running = [
            node_id
            for node_id, run in stored.runs.items()
            if run.state is NodeState.RUNNING and (node_id, run.attempt) not in recorded
        ]
        logs: list[ExecutionLogItem] = []
        for node_id in running[:LIVE_MAX]:
            log = await self._executions.live_log(stored, node_id)
            if log is not None:
                item = ExecutionLogItem(
                    node_id=node_id, attempt=log.attempt, text=log.text, live=log.live
                )
                logs.append(item)
        return logs


def in_order(stored: Stored) -> list[tuple[str, int, str]]:
    """The recorded logs, each as its node, its attempt and its text.

    They are in the order in which the attempts began, as far as the history has that.
    """
    starts: dict[tuple[str, int], int] = {}
    for line in stored.history:
        starts.setdefault((line.node_id, line.attempt), line.seq)

    def start_of(log: tuple[str, int, str]) -> tuple[int, str, int]:
        node_id, attempt, _ = log
        return starts.get((node_id, attempt), stored.last_seq), node_id, attempt

    return sorted(stored.logs, key=start_of)
