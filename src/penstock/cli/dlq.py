"""`penstock dlq`: nodes that failed for good."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.command_groups import CommandGroup
from penstock.cli.execution_ids import resolve
from penstock.cli.remote import (
    as_json,
    ask,
    decode,
    gather,
    list_limit,
    print_json,
    reading_options,
    server_options,
    short_time,
)

if TYPE_CHECKING:
    from penstock.client import Client
    from penstock.views.dead_letters import DeadLetter
    from penstock.views.retries import RetriedLetters

FILTERS = ("workflow", "handler", "category", "execution_id")
RETRY_EPILOG = """Examples:

\b
  penstock dlq retry 7 8
  penstock dlq retry --handler call_external_service --preview
  penstock dlq retry --all

Exit codes: 0 all were retried; 1 some could not be retried."""
Command = TypeVar("Command", bound=Callable[..., Any])


def filters(command: Command) -> Command:
    """Add the options that select dead letters."""
    options = (
        click.option("--execution", "execution_id", metavar="ID"),
        click.option(
            "--category", metavar="NAME", help="Of the last error: http, llm, handler, timeout, …"
        ),
        click.option("--handler", metavar="NAME"),
        click.option("--workflow", metavar="NAME"),
    )
    for option in options:
        command = option(command)
    return command


def given_filters(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in FILTERS if options[name] is not None}


async def resolved(client: Client, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The filters, with the whole id of the execution that they name."""
    if "execution_id" not in chosen:
        return dict(chosen)
    return {**chosen, "execution_id": await resolve(client, chosen["execution_id"])}


@click.group(
    cls=CommandGroup,
    short_help="List, retry and drop nodes that failed for good.",
    epilog="""Example:

\b
  penstock dlq list --workflow report
  penstock dlq retry --workflow report""",
)
def dlq() -> None:
    """Dead letters: nodes that failed for good, to retry or to drop."""


@dlq.command(
    "list", epilog="Example:\n\n\b\n  penstock dlq list --category http --json | jq '.items[].id'"
)
@filters
@click.option(
    "--all", "everything", is_flag=True, help="Also list dead letters that were retried or dropped."
)
@list_limit
@as_json
@reading_options
def list_dead_letters(**options: Any) -> None:
    """List dead letters, the newest first."""

    async def read_page(client: Client) -> tuple[list[dict[str, Any]], bool]:
        chosen = await resolved(client, given_filters(options))
        dead_letters = client.dead_letters(
            **chosen, closed=options["everything"], limit=options["limit"] + 1
        )
        return await gather(dead_letters, options["limit"])

    items, has_more = ask(options, read_page)
    if options["as_json"]:
        print_json({"items": items})
    elif not items:
        print("No dead letters.", file=sys.stderr)
    else:
        from penstock.cli.tables import show_table
        from penstock.views.dead_letters import DeadLetter

        rows = [_dead_letter_row(decode(item, DeadLetter)) for item in items]
        columns = ["id", "execution", "workflow", "node", "at", "tries", "closed", "error"]
        show_table(columns, rows, whole=("id", "execution"))
        if has_more:
            print("There are more; --limit shows them.", file=sys.stderr)


def _dead_letter_row(dead_letter: DeadLetter) -> list[object]:
    error = dead_letter.category
    if dead_letter.error:
        error = f"{dead_letter.category}: {dead_letter.error.message}"
    return [
        dead_letter.id,
        dead_letter.execution_id,
        f"{dead_letter.workflow}@{dead_letter.version}",
        dead_letter.node_id,
        short_time(dead_letter.at),
        len(dead_letter.attempts) + dead_letter.attempts_dropped,
        dead_letter.closed or "",
        error,
    ]


@dlq.command("show", epilog="Example:\n\n\b\n  penstock dlq show 7")
@click.argument("dead_letter_id", metavar="ID", type=int)
@as_json
@reading_options
def show_dead_letter(dead_letter_id: int, **options: Any) -> None:
    """Show a dead letter, and why each attempt failed."""
    answer = ask(options, lambda client: client.dead_letter(dead_letter_id))
    if options["as_json"]:
        print_json(answer)
        return
    from penstock.cli.safe_text import clean, one_line
    from penstock.cli.tables import show_table
    from penstock.views.dead_letters import DeadLetter

    dead_letter = decode(answer, DeadLetter)
    node = f"{dead_letter.node_id} ({dead_letter.handler})"
    workflow = f"{dead_letter.workflow}@{dead_letter.version}"
    print(one_line(f"{node} of {workflow}, execution {dead_letter.execution_id}"))
    if dead_letter.closed:
        retry = f" as {dead_letter.retried_as}" if dead_letter.retried_as else ""
        print(one_line(f"{dead_letter.closed} {short_time(dead_letter.closed_at)}{retry}"))
    print()

    rows = []
    for attempt in dead_letter.attempts:
        message = attempt.error.message if attempt.error else None
        rows.append([attempt.attempt, short_time(attempt.at), message])
    show_table(["attempt", "at", "error"], rows)

    trace = dead_letter.error.traceback if dead_letter.error else None
    if options["debug"] and trace:
        print("\n" + clean(trace))


@dlq.command("retry", epilog=RETRY_EPILOG)
@click.argument("ids", metavar="[ID…]", nargs=-1, type=int)
@filters
@click.option("--all", "everything", is_flag=True, help="All open dead letters.")
@click.option("--limit", type=click.IntRange(1, 1000), help="How many at most.")
@click.option("--preview", is_flag=True, help="Only show what would run.")
@as_json
@server_options
def retry_dead_letters(ids: tuple[int, ...], **options: Any) -> int:
    """Retry the dead letters with these ids, or all open ones that match the filters.

    Each failed execution is retried once, however many of its nodes are listed. Prints the ids of
    the new executions.
    """
    chosen = _selection(ids, options)
    limits = {"limit": options["limit"], "preview": options["preview"]}

    async def retry(client: Client) -> list[dict[str, Any]]:
        return await client.retry_dead_letters(**await resolved(client, chosen), **limits)

    items = ask(options, retry)
    if options["as_json"]:
        print_json({"items": items})
    elif not items:
        print("No dead letters.", file=sys.stderr)
    else:
        from penstock.views.retries import RetriedLetters

        for item in items:
            _print_retried(decode(item, RetriedLetters))
    return int(any("error" in item for item in items))


def _print_retried(retried: RetriedLetters) -> None:
    from penstock.cli.safe_text import counted, one_line

    if retried.error:
        print(one_line(f"{retried.retry_of}: {retried.error.detail}", 2000), file=sys.stderr)
    elif retried.execution_id:
        print(retried.execution_id)
    else:
        runs = counted(len(retried.runs or []), "node")
        reused = counted(len(retried.keeps or []), "output")
        print(f"{retried.retry_of}: {runs} would run, {reused} reused")


@dlq.command(
    "drop",
    epilog="Examples:\n\n\b\n  penstock dlq drop 7 8\n  penstock dlq drop --workflow old-report",
)
@click.argument("ids", metavar="[ID…]", nargs=-1, type=int)
@filters
@click.option("--all", "everything", is_flag=True, help="All open dead letters.")
@as_json
@server_options
def drop_dead_letters(ids: tuple[int, ...], **options: Any) -> None:
    """Drop dead letters that need no more attention. The executions stay as they are."""
    from penstock.cli.safe_text import counted

    chosen = _selection(ids, options)

    async def drop(client: Client) -> list[int]:
        dropped = list(ids)
        if not dropped:
            dead_letters = client.dead_letters(**await resolved(client, chosen))
            dropped = [item["id"] async for item in dead_letters]
        for dead_letter_id in dropped:
            await client.drop_dead_letter(dead_letter_id)
        return dropped

    dropped = ask(options, drop)
    if options["as_json"]:
        print_json({"dropped": dropped})
        return
    print(f"{counted(len(dropped), 'dead letter')} dropped")


def _selection(ids: tuple[int, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The selected dead letters; without ids, filters and --all it is an error."""
    chosen_filters = given_filters(options)
    if not (ids or chosen_filters or options["everything"]):
        raise click.UsageError("name ids or a filter, or use --all")
    if ids and (chosen_filters or options["everything"]):
        raise click.UsageError("use either ids, or filters and --all")
    return {"ids": list(ids)} if ids else chosen_filters
