"""`penstock errors`: which nodes failed, and why."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.moments import SINCE_HELP, UNTIL_HELP, as_moment
from penstock.cli.remote import (
    as_json,
    ask,
    decode,
    gather,
    list_limit,
    print_json,
    reading_options,
    short_time,
)

if TYPE_CHECKING:
    from penstock.client import Client
    from penstock.views.dead_letters import Failure

FILTERS = ("workflow", "node_id", "handler", "category", "text", "since", "until")
GROUPED_MAX = 10_000


@click.command(
    "errors",
    epilog="""Examples:

\b
  penstock errors --since 7d
  penstock errors --workflow report --node fetch --text "timed out"
  penstock errors --group --since 2026-01-24""",
)
@click.option("--workflow", metavar="NAME")
@click.option("--node", "node_id", metavar="ID")
@click.option("--handler", metavar="NAME")
@click.option("--category", metavar="NAME", help="Of the error: http, llm, handler, timeout, …")
@click.option("--text", metavar="TEXT", help="A part of the error's message.")
@click.option("--since", callback=as_moment, metavar="TIME", help=f"Failed {SINCE_HELP}")
@click.option("--until", callback=as_moment, metavar="TIME", help=f"Failed {UNTIL_HELP}")
@click.option(
    "--group", is_flag=True, help="Count them by workflow, node and category (the newest 10,000)."
)
@list_limit
@as_json
@reading_options
def errors(**options: Any) -> None:
    """List nodes that failed for good, and why, the newest first."""
    filters = {name: options[name] for name in FILTERS}
    limit = GROUPED_MAX if options["group"] else options["limit"]

    async def read_page(client: Client) -> tuple[list[dict[str, Any]], bool]:
        return await gather(client.errors(**filters, limit=limit + 1), limit)

    items, has_more = ask(options, read_page)
    if options["group"]:
        items = _grouped(items)
    if options["as_json"]:
        print_json({"items": items})
        return
    if not items:
        print("No errors.", file=sys.stderr)
        return
    from penstock.cli.tables import show_table

    if options["group"]:
        columns = ["count", "workflow", "node", "category", "newest", "message"]
        show_table(columns, [_group_row(item) for item in items])
    else:
        from penstock.views.dead_letters import Failure

        rows = [_error_row(decode(item, Failure)) for item in items]
        columns = ["at", "execution", "workflow", "node", "tries", "error"]
        show_table(columns, rows, whole=("execution",))
    if has_more:
        print("There are more; --limit shows them.", file=sys.stderr)


def _error_row(failure: Failure) -> list[object]:
    return [
        short_time(failure.at),
        failure.execution_id,
        f"{failure.workflow}@{failure.version}",
        failure.node_id,
        failure.attempts,
        f"{failure.category}: {failure.message}",
    ]


def _grouped(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Groups of errors, the most frequent first, each with its newest error."""
    counts: Counter[tuple[Any, ...]] = Counter()
    newest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for item in items:
        group = (item["workflow"], item["node_id"], item["category"])
        counts[group] += 1
        newest.setdefault(group, item)

    groups = []
    for group, count in counts.most_common():
        error = newest[group]
        groups.append(
            {
                "count": count,
                "workflow": error["workflow"],
                "node_id": error["node_id"],
                "category": error["category"],
                "newest_at": error["at"],
                "message": error["message"],
                "execution_id": error["execution_id"],
            }
        )
    return groups


def _group_row(item: Mapping[str, Any]) -> list[object]:
    return [
        item["count"],
        item["workflow"],
        item["node_id"],
        item["category"],
        short_time(item["newest_at"]),
        item["message"] or "",
    ]
