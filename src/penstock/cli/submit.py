"""`penstock submit`."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.remote import as_json, ask, print_json, server_options

if TYPE_CHECKING:
    from penstock.client import Client

SUFFIXES = frozenset({".json", ".jsonc", ".yaml", ".yml"})
EPILOG = """Examples:

\b
  penstock submit workflow.json --input '{"user_id": 7}'
  penstock submit report@stable --input @input.json --label team=billing --wait
  ID=$(penstock submit report --key-once order-7)

Prints the execution's id. Exit codes: 0 it was started (with --wait: it completed); 1 with --wait:
it failed or was cancelled; 2 it wasn't started."""


@click.command(epilog=EPILOG)
@click.argument("workflow", metavar="FILE|NAME[@VERSION]")
@click.option(
    "-i", "--input", "given", metavar="JSON|@FILE", help="The input: an object, or a file with one."
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="Label the execution; repeatable.",
)
@click.option(
    "--priority",
    type=click.IntRange(-100, 100),
    default=0,
    help="Tasks with a higher priority start first.",
)
@click.option(
    "--key-once", metavar="KEY", help="Start it only once: the same key returns the same execution."
)
@click.option("--wait", is_flag=True, help="Watch it until it has ended.")
@as_json
@server_options
def submit(workflow: str, **options: Any) -> int:
    """Start an execution on a server.

    FILE is a document, or - for standard input, or FILE.py:NAME or MODULE:NAME for a
    penstock.Workflow or a dict in Python. NAME is a workflow stored on the server, and NAME@stable
    one of its versions.
    """
    from penstock.cli import reading
    from penstock.cli.python_flows import is_importable, python_flow
    from penstock.config import Settings
    from penstock.runtime.document_files import document_limits

    limits = document_limits(Settings.load())
    path = Path(workflow)
    flow = python_flow(workflow)
    is_python = flow is not None and is_importable(flow)
    is_file = is_python or workflow == reading.STDIN or path.suffix in SUFFIXES or path.is_file()
    document: Any = workflow
    locating: AbstractContextManager[None] = nullcontext()
    if is_file:
        document, source = reading.read_object(workflow, limits)
        locating = source.locating()
    start_request = {
        "workflow": document,
        "input": reading.read_input(options["given"], limits) or None,
        "labels": reading.read_labels(options["labels"]) or None,
        "priority": options["priority"],
        "idempotency_key": options["key_once"],
    }
    with locating:
        return ask(options, lambda client: _submit(client, start_request, options))


async def _submit(client: Client, start_request: dict[str, Any], options: dict[str, Any]) -> int:
    from penstock.cli.watch import see_through

    started = await client.start(**start_request)
    if options["wait"]:
        return await see_through(client, started, options, quiet=options["as_json"])
    if options["as_json"]:
        print_json(started.accepted)
    else:
        print(started.id, flush=True)
        if sys.stdout.isatty():
            print(f"'penstock watch {started.id}' follows it.", file=sys.stderr)
    return 0
