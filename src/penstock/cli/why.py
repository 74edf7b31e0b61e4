"""`penstock why`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.cli.execution_ids import find_execution
from penstock.cli.remote import as_json, ask, print_json, server_options

if TYPE_CHECKING:
    from penstock.client import Client


@click.command("why", epilog="Example:\n\n\b\n  penstock why @last release")
@click.argument("execution_id", metavar="ID")
@click.argument("node_id", metavar="NODE")
@as_json
@server_options
def why(execution_id: str, node_id: str, **options: Any) -> None:
    """Say why NODE of the execution ID isn't running now."""
    from penstock.cli.safe_text import clean

    async def read(client: Client) -> dict[str, Any]:
        execution = await find_execution(client, execution_id)
        return await execution.why(node_id)

    answer = ask(options, read)
    if options["as_json"]:
        print_json(answer)
    else:
        print(clean(f"{node_id} is {answer['state']}: {answer['text']}"))
