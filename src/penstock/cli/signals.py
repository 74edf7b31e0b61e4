"""`penstock signal`, `signals`, `post`, `waits`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.cli.execution_ids import find_execution
from penstock.cli.remote import (
    as_json,
    ask,
    decode,
    gather,
    list_limit,
    print_json,
    server_options,
    short_time,
)

if TYPE_CHECKING:
    from penstock.client import Client

AN_ID = "0199a1b2-6c3d-7e4f-8a5b-9c0d1e2f3a4b"
SIGNAL_EPILOG = f"""Examples:

\b
  penstock signal {AN_ID} paid --payload '{{"amount": 7}}'
  penstock signal {AN_ID} paid --payload @payment.json --key-once pay-7

Prints the signal's number, and whether a node has taken it."""


@click.command(epilog=SIGNAL_EPILOG)
@click.argument("execution_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.option(
    "--payload", metavar="JSON|@FILE", help="Any JSON value, or a file with JSON. Default: null."
)
@click.option("--correlation", metavar="TEXT", help="Only for nodes that wait for this, or none.")
@click.option("--key-once", metavar="KEY", help="Send it only once, however often this is called.")
@as_json
@server_options
def signal(execution_id: str, name: str, **options: Any) -> None:
    """Send a signal NAME to the execution ID.

    One that nobody waits for yet is kept for the first node that does.
    """
    from penstock.cli.reading import read_option

    payload = read_option(options["payload"], "--payload")

    async def send(client: Client) -> None:
        execution = await find_execution(client, execution_id)
        sent = await execution.signal(
            name,
            payload,
            correlation=options["correlation"],
            idempotency_key=options["key_once"],
        )
        if options["as_json"]:
            print_json(sent)
        else:
            print(f"signal {sent['number']} {sent['state']}: {execution.execution_id}")

    ask(options, send)


@click.command(
    "post",
    epilog="""Example:

\b
  penstock post paid --correlation order-7 --payload '{"amount": 7}'""",
)
@click.argument("name", metavar="NAME")
@click.option("--correlation", metavar="TEXT", required=True, help="What receivers wait for.")
@click.option(
    "--payload", metavar="JSON|@FILE", help="Any JSON value, or a file with JSON. Default: null."
)
@click.option("--all", "to_all", is_flag=True, help="For everybody who waits, not only the first.")
@as_json
@server_options
def post(name: str, **options: Any) -> None:
    """Send a signal NAME by correlation.

    Whoever waits for it, now or within a day, gets it.
    """
    from penstock.cli.reading import read_option

    payload = read_option(options["payload"], "--payload")

    async def send(client: Client) -> None:
        to = "all" if options["to_all"] else "one"
        posted = await client.post_signal(name, options["correlation"], payload, to=to)
        if options["as_json"]:
            print_json(posted)
            return
        for sent in posted["delivered"]:
            print(f"signal {sent['number']} taken: {sent['execution_id']}")
        if posted["is_kept"]:
            print("kept for those who begin to wait later")

    ask(options, send)


@click.command("waits", epilog="Example:\n\n\b\n  penstock waits --correlation order-7")
@click.option("--name", metavar="NAME", help="Only for signals of this name.")
@click.option("--correlation", metavar="TEXT", help="Only with this correlation.")
@list_limit
@as_json
@server_options
def waits(**options: Any) -> None:
    """List nodes that wait for signals, the oldest first."""
    from penstock.cli.tables import show_table
    from penstock.views.signals import WaitItem

    async def read(client: Client) -> list[dict[str, Any]]:
        waits_listed = client.waits(name=options["name"], correlation=options["correlation"])
        items, _ = await gather(waits_listed, options["limit"])
        return items

    items = ask(options, read)
    if options["as_json"]:
        print_json(items)
        return
    rows: list[list[str]] = []
    for item in items:
        wait = decode(item, WaitItem)
        names = " ".join(wait.names)
        correlation = wait.correlation or ""
        since = short_time(wait.since)
        rows.append([wait.execution_id, wait.node_id, names, correlation, since])
    show_table(["id", "node", "for", "correlation", "since"], rows)


@click.command("signals", epilog=f"Example:\n\n\b\n  penstock signals {AN_ID}")
@click.argument("execution_id", metavar="ID")
@click.option("--name", metavar="NAME", help="Only signals of this name.")
@as_json
@server_options
def signals(execution_id: str, **options: Any) -> None:
    """List the signals of the execution ID.

    Each with the node that has taken it.
    """
    from penstock.cli.tables import show_table
    from penstock.views.signals import SignalItem

    async def read(client: Client) -> list[dict[str, Any]]:
        execution = await find_execution(client, execution_id)
        return await execution.signals(options["name"])

    items = ask(options, read)
    if options["as_json"]:
        print_json(items)
        return
    rows: list[list[str]] = []
    for item in items:
        shown = decode(item, SignalItem)
        taker = shown.node_id or ""
        at = short_time(shown.at)
        rows.append([str(shown.number), shown.name, shown.state, taker, shown.sender, at])
    show_table(["number", "name", "state", "node", "from", "at"], rows)
