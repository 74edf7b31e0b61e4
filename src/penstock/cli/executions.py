"""`penstock list`, `show`, `results`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.execution_ids import find_execution
from penstock.cli.moments import SINCE_HELP, UNTIL_HELP, as_moment
from penstock.cli.remote import (
    as_json,
    ask,
    decode,
    gather,
    labels_text,
    list_limit,
    print_json,
    reading_options,
    seconds_between,
    short_time,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.client import Client
    from penstock.views.executions import Execution, ListedExecution
    from penstock.views.nodes import Node

STATES = ("PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED")
NODES_SHOWN = 200


@click.command(
    "list",
    epilog="""Examples:

\b
  penstock list
  penstock list --state FAILED --workflow report --since 1h
  penstock list --label team=billing --limit 1000 --json | jq -r '.items[].execution_id'""",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Repeatable.",
)
@click.option("--workflow", metavar="NAME")
@click.option("--version", type=int, metavar="N", help="Only executions of this version.")
@click.option(
    "--label", "labels", multiple=True, metavar="NAME=VALUE", help="Repeatable; all must match."
)
@click.option("--since", callback=as_moment, metavar="TIME", help=f"Created {SINCE_HELP}")
@click.option("--until", callback=as_moment, metavar="TIME", help=f"Created {UNTIL_HELP}")
@click.option("--text", metavar="TEXT", help="A part of the id or of the workflow's name.")
@list_limit
@as_json
@reading_options
def list_executions(**options: Any) -> None:
    """List executions, the newest first."""
    from penstock.cli.reading import read_labels

    filters = {name: options[name] for name in ("workflow", "version", "since", "until", "text")}
    filters |= {
        "state": [state.upper() for state in options["states"]],
        "labels": read_labels(options["labels"]),
    }

    async def read_page(client: Client) -> tuple[list[dict[str, Any]], bool]:
        executions = client.executions(**filters, limit=options["limit"] + 1)
        return await gather(executions, options["limit"])

    items, has_more = ask(options, read_page)
    if options["as_json"]:
        print_json({"items": items})
        return
    from penstock.cli.tables import show_table
    from penstock.views.executions import ListedExecution

    if not items:
        print("No executions.", file=sys.stderr)
        return
    columns = ["id", "workflow", "state", "created", "took", "note"]
    show_table(columns, [_execution_row(decode(item, ListedExecution)) for item in items])
    if has_more:
        print("There are more; --limit shows them.", file=sys.stderr)


def _execution_row(execution: ListedExecution) -> list[str]:
    from penstock.cli.safe_text import duration

    start = execution.started_at or execution.created_at
    took = seconds_between(start, execution.finished_at)
    error = execution.error
    if not error:
        note = labels_text(execution.labels)
    elif error.node_id:
        note = f"{error.node_id}: {error.message}"
    else:
        note = error.message
    return [
        execution.execution_id,
        f"{execution.workflow}@{execution.version}",
        execution.state,
        short_time(execution.created_at),
        "" if took is None else duration(took),
        note,
    ]


@click.command(
    short_help="Show an execution: its nodes, failures and output.",
    epilog="""Examples:

\b
  penstock show @last
  penstock show 0199a1b2-6c3d --json | jq .nodes
  penstock show 0199a1b2-6c3d --under each --state FAILED""",
)
@click.argument("execution_id", metavar="ID")
@click.option(
    "--under",
    metavar="NODE",
    help="Show what is inside of this map, loop or item, such as each[3].",
)
@click.option("--state", metavar="STATE", help="With --under: only nodes in this state.")
@click.option(
    "--logs", is_flag=True, help="Show the logs of all handlers, not only of those that failed."
)
@as_json
@reading_options
def show(execution_id: str, **options: Any) -> None:
    """Show the execution ID: its nodes, its failures and its output."""
    if options["under"] is not None:
        _show_inside(execution_id, options)
        return

    async def show_execution(client: Client) -> None:
        handle = await find_execution(client, execution_id)
        result = await handle.status()
        if options["as_json"]:
            print_json(result.view)
            return
        from penstock.cli.ending import execution_of, remote_ending
        from penstock.cli.report import report
        from penstock.cli.run import chosen_screen

        _print_head(execution_of(result))
        ending = await remote_ending(handle, result, logs=options["logs"])
        with chosen_screen(plain=False, no_color=False) as screen:
            screen.show(report(ending, all_logs=options["logs"], debug=options["debug"]))

    ask(options, show_execution)


def _show_inside(execution_id: str, options: Mapping[str, Any]) -> None:
    """Show the nodes inside of a map, a loop or an item."""
    from penstock.cli.tables import show_table
    from penstock.views.nodes import ListedNode

    state = options["state"]
    nodes = ask(
        options,
        lambda client: client.execution(execution_id).nodes(
            options["under"], state.upper() if state else None
        ),
    )
    if options["as_json"]:
        print_json(nodes)
        return
    listed = [decode(node, ListedNode) for node in nodes]
    rows = [_node_row(node.node_id, node) for node in listed[:NODES_SHOWN]]
    show_table(["state", "node", "try", "took", "note"], rows)
    if len(listed) > NODES_SHOWN:
        print(f"and {len(listed) - NODES_SHOWN:,} more; --json shows all")


def _print_head(execution: Execution) -> None:
    from penstock.cli.safe_text import one_line
    from penstock.cli.tables import show_table

    workflow = f"{execution.workflow}@{execution.version}"
    print(one_line(f"{workflow}  {execution.execution_id}  {execution.state}"))
    facts = {
        "created": short_time(execution.created_at),
        "labels": labels_text(execution.labels),
        "retry of": execution.retry_of,
    }
    for name, value in facts.items():
        if value:
            print(one_line(f"{name} {value}"))
    print()

    nodes = execution.nodes or {}
    shown = list(nodes.items())[:NODES_SHOWN]
    rows = [_node_row(node_id, node) for node_id, node in shown]
    show_table(["state", "node", "try", "took", "note"], rows)
    if len(nodes) > NODES_SHOWN:
        print(f"and {len(nodes) - NODES_SHOWN:,} more; --json shows all")
    print(flush=True)


def _node_row(node_id: str, node: Node) -> list[object]:
    from penstock.cli.progress import items_note
    from penstock.cli.safe_text import duration
    from penstock.engine.reasons import Reason, reason_text

    took = seconds_between(node.started_at, node.finished_at)
    if node.error:
        note = node.error.message
    elif node.items:
        note = items_note(node.items)
    elif node.reason == Reason.CANCELLED:
        note = ""  # the state says it
    else:
        note = reason_text(node.reason)
    return [
        node.state,
        node_id,
        node.attempt or "",
        "" if took is None else duration(took),
        note,
    ]


def _print_items(execution_id: str, options: Mapping[str, Any]) -> int:
    """Print the items of a map, in the order of their ends."""

    async def print_all(client: Client) -> None:
        execution = client.execution(execution_id)
        async for item in execution.items(options["items"], follow=options["follow"]):
            print(json.dumps(item, ensure_ascii=False), flush=True)

    ask(options, print_all)
    return 0


@click.command(
    short_help="Print the output of an execution as JSON.",
    epilog="""Examples:

\b
  penstock results @last | jq .total
  penstock results 0199a1b2-6c3d --node letter
  penstock results 0199a1b2-6c3d --items each --follow

Exit codes: 0 it completed; 1 it did not complete, or not yet: the output so far is printed.""",
)
@click.argument("execution_id", metavar="ID")
@click.option(
    "--node", metavar="NODE", help="Print the output of this node instead of the workflow's."
)
@click.option(
    "--items", metavar="NODE", help="Print the items of this map that have ended, one on each line."
)
@click.option("--follow", is_flag=True, help="With --items: go on until the map has ended.")
@as_json
@reading_options
def results(execution_id: str, node: str | None, **options: Any) -> int:
    """Print the output of the execution ID as JSON.

    With --json, print everything: the state, the outputs of all nodes, the tokens that language
    models used, and the error.
    """
    if options["items"] is not None:
        return _print_items(execution_id, options)
    from penstock.cli.reading import Refused
    from penstock.cli.safe_text import json_text, one_line
    from penstock.views.executions import Results

    async def read_results(client: Client) -> dict[str, Any]:
        handle = await find_execution(client, execution_id)
        return await handle.results()

    answer = ask(options, read_results)
    results = decode(answer, Results)
    if options["as_json"]:
        print_json(answer)
    elif node is None:
        print(json_text(results.output, indent=2))
    elif node in results.outputs:
        print(json_text(results.outputs[node], indent=2))
    else:
        message = f"node {node!r} has no output in execution {results.execution_id}"
        raise Refused(f"{message}; 'penstock show {results.execution_id}' shows its state")
    if not results.completed:
        error = f": {results.error.message}" if results.error else ""
        print(one_line(f"the execution is {results.state}{error}", 2000), file=sys.stderr)
    return int(not results.completed)
