"""`penstock logs`: what the handlers of an execution have logged, also while it runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.execution_ids import find_execution
from penstock.cli.remote import WAIT_SECONDS, as_json, ask, print_json, reading_options
from penstock.cli.safe_text import clean, one_line

if TYPE_CHECKING:
    from penstock.client import Client, Execution

LOOK_SECONDS = 1.0
"""Between two looks at running nodes: workers share their logs about as often."""
SINGLE_NODES_MAX = 3
"""The logs of more nodes than this are read with those of the whole execution, in one call."""
NAME_WIDTH_MAX = 40
RUNNING = "RUNNING"
AFTER_AN_ATTEMPT = frozenset({"COMPLETED", "FAILED", "RETRYING", "CANCELLED"})

EPILOG = """Examples:

\b
  penstock logs @last
  penstock logs @last fetch --follow
  penstock logs 0199a1b2-6c3d --json | jq -r '.items[].text'

With --follow and --json, each line is an object with what is new in the log of one attempt."""


@click.command(short_help="Print what the handlers of an execution have logged.", epilog=EPILOG)
@click.argument("execution_id", metavar="ID")
@click.argument("node_id", metavar="[NODE]", required=False)
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Go on until the execution has ended. Running nodes are read once a second.",
)
@as_json
@reading_options
def logs(execution_id: str, node_id: str | None, **options: Any) -> None:
    """Print what the handlers of the execution ID have logged, or the handler of NODE.

    The logs are in the order in which the attempts began. Attempts that still run are included.
    """

    async def show_logs(client: Client) -> None:
        handle = await find_execution(client, execution_id)
        printer = LogPrinter(has_names=node_id is None, as_json=options["as_json"])
        if options["follow"]:
            if options["read_store"] is None:
                client.retry_seconds = WAIT_SECONDS
            await LogFollower(handle, node_id, printer).run()
            return
        items = [item async for item in read_logs(handle, node_id)]
        if options["as_json"]:
            print_json({"items": items})
            return
        for item in items:
            printer.show(item)
        if not items:
            print("No logs.", file=sys.stderr)

    ask(options, show_logs)


async def read_logs(handle: Execution, node_id: str | None) -> AsyncIterator[dict[str, Any]]:
    """The logs of a node, or of all nodes."""
    if node_id is None:
        async for item in handle.all_logs():
            yield item
        return
    for attempt, text in (await handle.logs(node_id)).items():
        yield {"node_id": node_id, "attempt": attempt, "text": text}


class LogPrinter:
    """Prints logs, and of a log that has grown only the new lines."""

    def __init__(self, *, has_names: bool, as_json: bool) -> None:
        self._has_names = has_names
        self._as_json = as_json
        self._shown: dict[tuple[str, int], int] = {}
        """Lines of each log that were printed, by node and attempt."""

    def show(self, item: Mapping[str, Any]) -> None:
        node_id = str(item["node_id"])
        attempt = int(item["attempt"])
        lines = str(item["text"]).splitlines()
        new_lines = lines[self._shown.get((node_id, attempt), 0) :]
        if not new_lines:
            return
        self._shown[node_id, attempt] = len(lines)
        if self._as_json:
            print_json({"node_id": node_id, "attempt": attempt, "text": "\n".join(new_lines)})
        else:
            name = self._name(node_id, attempt)
            print("\n".join(f"{name}{clean(line)}" for line in new_lines))
        sys.stdout.flush()

    def _name(self, node_id: str, attempt: int) -> str:
        if not self._has_names:
            return ""
        number = f"#{attempt}" if attempt > 1 else ""
        return f"{one_line(node_id, NAME_WIDTH_MAX)}{number} | "


class LogFollower:
    """Prints the logs of an execution as they grow, until it has ended."""

    def __init__(self, handle: Execution, node_id: str | None, printer: LogPrinter) -> None:
        self._handle = handle
        self._node_id = node_id
        self._printer = printer
        self._changed: dict[str, None] = {}
        """Nodes of which an attempt has ended since they were read."""
        self._running: dict[str, None] = {}
        self._happened = asyncio.Event()

    async def run(self) -> None:
        await self._read_all()
        following = asyncio.create_task(self._follow_events())
        following.add_done_callback(lambda _: self._happened.set())
        try:
            while not following.done():
                await self._wait()
                await self._read_changed()
            following.result()  # raises what has ended it too early
            await self._read_changed()
        finally:
            following.cancel()

    async def _wait(self) -> None:
        """Wait until something has happened; not for long if a node runs."""
        timeout = LOOK_SECONDS if self._running else None
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._happened.wait()
        self._happened.clear()

    async def _follow_events(self) -> None:
        async for event in self._handle.events():
            node_id = event["node_id"]
            if node_id is None or self._node_id not in (None, node_id):
                continue
            if event["to"] == RUNNING:
                self._running[node_id] = None
            else:
                self._running.pop(node_id, None)
            if event["to"] in AFTER_AN_ATTEMPT:
                self._changed[node_id] = None
            self._happened.set()

    async def _read_changed(self) -> None:
        node_ids = self._changed | self._running
        self._changed.clear()
        if len(node_ids) > SINGLE_NODES_MAX:
            await self._read_all()
            return
        for node_id in node_ids:
            await self._show(read_logs(self._handle, node_id))

    async def _read_all(self) -> None:
        await self._show(read_logs(self._handle, self._node_id))

    async def _show(self, items: AsyncIterator[dict[str, Any]]) -> None:
        async for item in items:
            self._printer.show(item)
