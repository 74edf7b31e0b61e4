"""`penstock watch`: follows an execution on a server, in the view of `penstock run`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.execution_ids import find_execution
from penstock.cli.remote import WAIT_SECONDS, ask, decode, print_json, server_options

if TYPE_CHECKING:
    from penstock.cli.interrupt import Interrupt
    from penstock.cli.progress import Progress, Row
    from penstock.cli.screens import Screen
    from penstock.client import Client, Execution
    from penstock.views.result import Result

EPILOG = """Examples:

\b
  penstock watch @last
  penstock watch 0199a1b2-6c3d --json | jq .to

Exit codes: 0 it completed; 1 it failed or was cancelled; 130 Ctrl-C (the execution goes on)."""


@click.command(short_help="Follow an execution until it has ended.", epilog=EPILOG)
@click.argument("execution_id", metavar="ID")
@click.option(
    "--json", "as_json", is_flag=True, help="Print each event as a line of JSON, and nothing else."
)
@click.option(
    "--logs",
    is_flag=True,
    help="Show the logs of all handlers at the end, not only of those that failed.",
)
@click.option("--plain", is_flag=True, help="A line for each change instead of the live table.")
@click.option(
    "--no-color", is_flag=True, help="No colours. NO_COLOR in the environment does the same."
)
@server_options
def watch(execution_id: str, **options: Any) -> int:
    """Follow the execution ID until it has ended, from its first event on.

    The view survives a restart of the server. Ctrl-C ends the view, not the execution.
    """
    return ask(options, lambda client: _watch(client, execution_id, options))


async def _watch(client: Client, execution_id: str, options: Mapping[str, Any]) -> int:
    handle = await find_execution(client, execution_id)
    if not options["as_json"]:
        return await see_through(client, handle, options)
    await handle.status()
    client.retry_seconds = WAIT_SECONDS
    async for event in handle.events():
        print_json(event)
    return int(not (await handle.result()).completed)


async def see_through(
    client: Client, handle: Execution, options: Mapping[str, Any], *, quiet: bool = False
) -> int:
    """Show an execution until it has ended, and return the exit code.

    With `quiet`, nothing is shown but the result, as JSON.
    """
    from penstock.cli.run import chosen_screen

    status = await handle.status()
    client.retry_seconds = WAIT_SECONDS
    if quiet:
        result = await handle.result()
        print_json(result.view)
        return int(not result.completed)

    plain = options.get("plain", False)
    no_color = options.get("no_color", False)
    logs = options.get("logs", False)
    with chosen_screen(plain=plain, no_color=no_color) as screen:
        watching = Watching(client, handle, screen)
        return await watching.run(status, logs=logs, debug=options["debug"])


class Watching:
    """The view of one execution on a screen."""

    def __init__(self, client: Client, handle: Execution, screen: Screen) -> None:
        self._client = client
        self._handle = handle
        self._screen = screen

    async def run(self, status: Result, *, logs: bool, debug: bool) -> int:
        from penstock.cli.ending import execution_of, remote_ending
        from penstock.cli.interrupt import Interrupt
        from penstock.cli.progress import Progress
        from penstock.cli.report import report
        from penstock.views.times import seconds_of

        with Interrupt(self._screen.restore) as interrupt:
            rows = await self._rows(status)
            created_at = seconds_of(execution_of(status).created_at)
            progress = Progress(status.workflow, rows, self._handle.id, created_at)
            if not await self._follow_until_end(progress, interrupt):
                hint = f"'penstock watch {self._handle.id}' shows it again"
                self._screen.show([[(f"The execution goes on; {hint}.", "")]])
                return interrupt.exit_code or 130

            result = await self._handle.result()
            ending = await remote_ending(self._handle, result, logs=logs)
            self._screen.show(report(ending, all_logs=logs, debug=debug))
        return int(not result.completed)

    async def _rows(self, status: Result) -> list[Row]:
        """From the stored version, else (of an inline document, for example) from the graph."""
        from penstock.cli.progress import rows_of_graph, rows_of_plan
        from penstock.definition.plan import compile_document
        from penstock.errors import InvalidWorkflow, NotFound
        from penstock.views.graphs import Graph
        from penstock.views.workflows import Workflow

        try:
            stored = await self._client.workflow(status.workflow, status.version)
            definition = decode(stored, Workflow).definition
            compiled = compile_document(
                definition, allow_unknown_handlers=True, checked=True, stored=True
            )
            return rows_of_plan(compiled.plan)
        except (NotFound, InvalidWorkflow):
            return rows_of_graph(decode(await self._handle.graph(), Graph))

    async def _follow_until_end(self, progress: Progress, interrupt: Interrupt) -> bool:
        """Show events until the execution has ended; False if the user stopped before."""
        self._screen.begin(progress)
        following = asyncio.create_task(self._follow(progress))
        stopping = asyncio.create_task(interrupt.requested.wait())
        ticking = asyncio.create_task(self._tick())
        try:
            await asyncio.wait({following, stopping, ticking}, return_when=asyncio.FIRST_COMPLETED)
            for ended in (following, ticking):
                if ended.done():
                    # Raises if nobody reads any more: `| head`, or a closed terminal.
                    ended.result()
            return following.done()
        finally:
            for task in (following, stopping, ticking):
                task.cancel()
            self._screen.end()

    async def _follow(self, progress: Progress) -> None:
        from penstock.cli.ending import remote_failed_node

        async for event in self._handle.events(depth=0):
            row = progress.apply(event)
            if row is not None and self._screen.shows_details and progress.lacks(row):
                progress.learn(row.name, await remote_failed_node(self._handle, row.name))
            self._screen.changed(row)

    async def _tick(self) -> None:
        from penstock.cli.session import TICK_SECONDS

        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._screen.tick()
