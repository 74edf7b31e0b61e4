"""`penstock approvals`, `approve`, `reject`."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
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
    from penstock.client import Client, Execution

LOOK_SECONDS = 0.2
AN_ID = "0199a1b2-6c3d-7e4f-8a5b-9c0d1e2f3a4b"


@click.command("approvals", epilog="Example:\n\n\b\n  penstock approvals --mine")
@click.option("--mine", is_flag=True, help="Only those that your key may decide.")
@list_limit
@as_json
@server_options
def approvals(**options: Any) -> None:
    """List what waits for a decision, the oldest first."""
    from penstock.cli.tables import show_table
    from penstock.views.approvals import ApprovalItem

    async def read(client: Client) -> list[dict[str, Any]]:
        if options["mine"]:
            return await _first_of_caller(client, options["limit"])
        items, _ = await gather(client.approvals(), options["limit"])
        return items

    items = ask(options, read)
    if options["as_json"]:
        print_json(items)
        return
    rows: list[list[str]] = []
    for item in items:
        approval = decode(item, ApprovalItem)
        may = "yes" if approval.may_decide else "no"
        expires = short_time(approval.expires_at)
        since = short_time(approval.since)
        rows.append([approval.execution_id, approval.node_id, approval.title, since, expires, may])
    show_table(["id", "node", "title", "since", "expires", "yours"], rows)


async def _first_of_caller(client: Client, limit: int) -> list[dict[str, Any]]:
    """At most `limit` approvals that the caller may decide, wherever they stand in the list."""
    items: list[dict[str, Any]] = []
    async with aclosing(client.approvals()) as listed:
        async for item in listed:
            if item["may_decide"]:
                items.append(item)
            if len(items) == limit:
                break
    return items


async def _wait_until_asked(execution: Execution, node_id: str, seconds: float) -> None:
    """Wait until a node asks for a decision, or can't any more."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        why = await execution.why(node_id)
        if why["reason"] in ("approval", "ended"):
            return
        await asyncio.sleep(LOOK_SECONDS)


def _decision_command(verb: str, description: str, *, has_form: bool) -> click.Command:
    epilog = f"Example:\n\n\b\n  penstock {verb} {AN_ID} release --comment 'seen by Ada'"

    @click.command(verb, help=description, epilog=epilog)
    @click.argument("execution_id", metavar="ID")
    @click.argument("node_id", metavar="NODE")
    @click.option("--comment", metavar="TEXT", help="Why.")
    @click.option("--by", metavar="NAME", help="Who decides, where no API key says so.")
    @click.option(
        "--wait",
        "wait_seconds",
        type=click.FloatRange(0),
        default=0.0,
        metavar="SECONDS",
        help="How long to wait until NODE asks. Default: not at all.",
    )
    @as_json
    @server_options
    def command(execution_id: str, node_id: str, **options: Any) -> None:
        from penstock.cli.reading import read_option

        about = {"comment": options["comment"], "by": options["by"]}
        if has_form:
            about["form"] = read_option(options["form"], "--form")

        async def decide(client: Client) -> None:
            execution = await find_execution(client, execution_id)
            await _wait_until_asked(execution, node_id, options["wait_seconds"])
            decided = await getattr(execution, verb)(node_id, **about)
            if options["as_json"]:
                print_json(decided)
            else:
                more = "" if decided["is_final"] else "; more must approve"
                print(f"{decided['decision']}: {node_id} of {execution.execution_id}{more}")

        ask(options, decide)

    if has_form:
        help_text = "What the form asks for: JSON, or a file with JSON."
        command = click.option("--form", metavar="JSON|@FILE", help=help_text)(command)
    return command


approve = _decision_command(
    "approve", "Approve what NODE of the execution waits for.", has_form=True
)
reject = _decision_command("reject", "Reject what NODE of the execution waits for.", has_form=False)
