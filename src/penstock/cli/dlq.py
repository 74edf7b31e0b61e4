"""`penstock dlq`: nodes that failed for good."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.remote import as_json, ask, gather, print_json, server_options, short_time

if TYPE_CHECKING:
    from penstock.client import Client

FILTERS = ("workflow", "handler", "category", "execution_id")
RETRY_EPILOG = """Examples:

\b
  penstock dlq retry 7 8
  penstock dlq retry --handler call_external_service --preview
  penstock dlq retry --all

Exit codes: 0 all were retried; 1 some couldn't be."""
Command = TypeVar("Command", bound=Callable[..., Any])


def filters(command: Command) -> Command:
    for option in (
        click.option("--execution", "execution_id", metavar="ID"),
        click.option(
            "--category", metavar="NAME", help="Of the last error: http, llm, handler, timeout, …"
        ),
        click.option("--handler", metavar="NAME"),
        click.option("--workflow", metavar="NAME"),
    ):
        command = option(command)
    return command


def given_filters(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in FILTERS if options[name] is not None}


@click.group(
    epilog="Example:\n\n\b\n  penstock dlq list --workflow report\n  penstock dlq retry --workflow report"
)
def dlq() -> None:
    """Dead letters: nodes that failed for good, to retry or to drop."""


@dlq.command(
    "list", epilog="Example:\n\n\b\n  penstock dlq list --category http --json | jq '.items[].id'"
)
@filters
@click.option("--all", "everything", is_flag=True, help="Also those that were retried or dropped.")
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most."
)
@as_json
@server_options
def list_dead_letters(**options: Any) -> None:
    """List dead letters, the newest first."""

    async def listed(client: Client) -> tuple[list[dict[str, Any]], bool]:
        found = client.dead_letters(
            **given_filters(options), closed=options["everything"], limit=options["limit"] + 1
        )
        return await gather(found, options["limit"])

    items, more = ask(options, listed)
    if options["as_json"]:
        print_json({"items": items})
    elif not items:
        print("No dead letters.", file=sys.stderr)
    else:
        from penstock.cli.tables import show_table

        columns = ["id", "execution", "workflow", "node", "at", "tries", "closed", "error"]
        show_table(columns, [_row(item) for item in items], whole=("id", "execution"))
        if more:
            print("There are more; --limit shows them.", file=sys.stderr)


def _row(item: Mapping[str, Any]) -> list[object]:
    name = f"{item['workflow']}@{item['version']}"
    error = f"{item['category']}: {item['error']['message']}" if item["error"] else item["category"]
    columns = [item["id"], item["execution_id"], name, item["node_id"], short_time(item["at"])]
    attempts = len(item["attempts"]) + item.get("attempts_dropped", 0)
    return [*columns, attempts, item["closed"] or "", error]


@dlq.command("show", epilog="Example:\n\n\b\n  penstock dlq show 7")
@click.argument("dead_letter_id", metavar="ID", type=int)
@as_json
@server_options
def show_dead_letter(dead_letter_id: int, **options: Any) -> None:
    """Show a dead letter with why each attempt failed."""
    dead_letter = ask(options, lambda client: client.dead_letter(dead_letter_id))
    if options["as_json"]:
        print_json(dead_letter)
        return
    from penstock.cli.safe_text import clean, one_line
    from penstock.cli.tables import show_table

    where = f"{dead_letter['workflow']}@{dead_letter['version']}, execution {dead_letter['execution_id']}"
    print(one_line(f"{dead_letter['node_id']} ({dead_letter['handler']}) of {where}"))
    if dead_letter["closed"]:
        again = f" as {dead_letter['retried_as']}" if dead_letter["retried_as"] else ""
        print(one_line(f"{dead_letter['closed']} {short_time(dead_letter['closed_at'])}{again}"))
    print()
    rows = [
        [it["attempt"], short_time(it["at"]), (it["error"] or {}).get("message")]
        for it in dead_letter["attempts"]
    ]
    show_table(["attempt", "at", "error"], rows)
    if options["debug"] and (trace := (dead_letter["error"] or {}).get("traceback")):
        print("\n" + clean(trace))


@dlq.command("retry", epilog=RETRY_EPILOG)
@click.argument("ids", metavar="[ID…]", nargs=-1, type=int)
@filters
@click.option("--all", "everything", is_flag=True, help="All open ones.")
@click.option("--limit", type=click.IntRange(1, 1000), help="How many at most.")
@click.option("--preview", is_flag=True, help="Only show what would run.")
@as_json
@server_options
def retry_dead_letters(ids: tuple[int, ...], **options: Any) -> int:
    """Retry dead letters: those with these ids, or all open ones that fit the filters.

    Each failed execution is retried once, however many of its nodes are listed. Prints the new
    executions' ids.
    """
    chosen = _chosen(ids, options)
    more = {"limit": options["limit"], "preview": options["preview"]}
    items = ask(options, lambda client: client.retry_dead_letters(**chosen, **more))
    if options["as_json"]:
        print_json({"items": items})
    elif not items:
        print("No dead letters.", file=sys.stderr)
    else:
        for item in items:
            _print_retried(item)
    return int(any("error" in item for item in items))


def _print_retried(item: Mapping[str, Any]) -> None:
    from penstock.cli.safe_text import counted, one_line

    if "error" in item:
        print(one_line(f"{item['retry_of']}: {item['error'].get('detail')}", 2000), file=sys.stderr)
    elif item["execution_id"] is None:
        print(
            f"{item['retry_of']}: {counted(len(item['runs']), 'node')} would run, {len(item['keeps'])} kept"
        )
    else:
        print(item["execution_id"])


@dlq.command(
    "drop",
    epilog="Examples:\n\n\b\n  penstock dlq drop 7 8\n  penstock dlq drop --workflow old-report",
)
@click.argument("ids", metavar="[ID…]", nargs=-1, type=int)
@filters
@click.option("--all", "everything", is_flag=True, help="All open ones.")
@server_options
def drop_dead_letters(ids: tuple[int, ...], **options: Any) -> None:
    """Drop dead letters: nobody needs to look at them any more. The executions stay as they are."""
    from penstock.cli.safe_text import counted

    chosen = _chosen(ids, options)

    async def drop(client: Client) -> int:
        dropped = list(ids) or [item["id"] async for item in client.dead_letters(**chosen)]
        for dead_letter_id in dropped:
            await client.drop_dead_letter(dead_letter_id)
        return len(dropped)

    print(f"{counted(ask(options, drop), 'dead letter')} dropped")


def _chosen(ids: tuple[int, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing given must not mean everything."""
    found = given_filters(options)
    if not (ids or found or options["everything"]):
        raise click.UsageError("name ids or a filter, or say --all")
    if ids and (found or options["everything"]):
        raise click.UsageError("either ids, or filters and --all")
    return {"ids": list(ids)} if ids else found
