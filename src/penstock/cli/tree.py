"""`penstock tree`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.cli.execution_ids import find_execution
from penstock.cli.remote import as_json, ask, print_json, server_options

if TYPE_CHECKING:
    from penstock.client import Client


@click.command("tree", epilog="Example:\n\n\b\n  penstock tree @last")
@click.argument("execution_id", metavar="ID")
@as_json
@server_options
def tree(execution_id: str, **options: Any) -> None:
    """Show the execution ID with its children, and theirs."""
    from penstock.cli.safe_text import clean

    async def read(client: Client) -> dict[str, Any]:
        execution = await find_execution(client, execution_id)
        return await execution.tree()

    answer = ask(options, read)
    if options["as_json"]:
        print_json(answer)
        return
    for item in answer["items"]:
        node = f"{item['node_id']}: " if item["node_id"] else ""
        workflow = f"{item['workflow']}@{item['version']}"
        line = f"{node}{workflow} {item['state']} {item['execution_id']}"
        print("  " * item["depth"] + clean(line))
    if answer.get("truncated"):
        print("… there are more")
