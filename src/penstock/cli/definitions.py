"""`penstock put`, `versions`, `alias`, `workers`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.command_groups import CommandGroup
from penstock.cli.remote import as_json, ask, decode, gather, print_json, server_options, short_time

if TYPE_CHECKING:
    from penstock.client import Client
    from penstock.views.workflows import ListedWorkflow, ShownWeights, Version

SHARE = re.compile(r"(\d{1,9})=(\d{1,7})")


@click.command(
    short_help="Store a workflow without starting it.",
    epilog="Examples:\n\n\b\n  penstock put report.json\n  penstock put - < report.json",
)
@click.argument("file", metavar="FILE")
@click.option("--strict", is_flag=True, help="Treat unknown fields as errors.")
@click.option(
    "--allow-unknown-handlers",
    is_flag=True,
    help="Accept handlers that no worker has registered yet.",
)
@as_json
@server_options
def put(file: str, *, strict: bool, allow_unknown_handlers: bool, **options: Any) -> None:
    """Store the workflow in FILE (- for standard input) under its name, as its latest version.

    FILE may also be FILE.py:NAME or MODULE:NAME, a penstock.Workflow or a dict in Python.

    From now on, the name starts this version, so the API key needs the scope operate.
    `penstock submit FILE` starts a document without storing it under its name.
    """
    from penstock.cli import reading
    from penstock.cli.safe_text import one_line
    from penstock.config import Settings
    from penstock.runtime.document_files import document_limits
    from penstock.views.workflows import StoredWorkflow

    document, source = reading.read_object(file, document_limits(Settings.load()))

    async def store(client: Client) -> dict[str, Any]:
        return await client.put_workflow(
            document, strict=strict, allow_unknown_handlers=allow_unknown_handlers
        )

    with source.locating():
        answer = ask(options, store)
    if options["as_json"]:
        print_json(answer)
        return
    stored = decode(answer, StoredWorkflow)
    for warning in stored.warnings:
        print(one_line(f"warning: {warning.message}"), file=sys.stderr)
    print(one_line(f"{stored.name}@{stored.version}"))


@click.command(
    short_help="List the workflows, or the versions of one.",
    epilog="Examples:\n\n\b\n  penstock versions\n  penstock versions report --json",
)
@click.argument("name", metavar="[NAME]", required=False)
@as_json
@server_options
def versions(name: str | None, **options: Any) -> None:
    """List the versions of the workflow NAME, the newest first; without NAME, all workflows."""

    async def read_all(client: Client) -> list[dict[str, Any]]:
        listing = client.workflows() if name is None else client.versions(name)
        items, _ = await gather(listing)
        return items

    items = ask(options, read_all)
    if options["as_json"]:
        print_json({"items": items})
        return
    from penstock.cli.tables import show_table
    from penstock.views.workflows import ListedWorkflow, Version

    if not items:
        print("No workflows.", file=sys.stderr)
    elif name is None:
        columns = ["workflow", "latest", "versions", "aliases", "updated"]
        show_table(columns, [_workflow_row(decode(item, ListedWorkflow)) for item in items])
    else:
        columns = ["version", "created", "aliases", "content"]
        show_table(columns, [_version_row(decode(item, Version)) for item in items])


def _workflow_row(workflow: ListedWorkflow) -> list[object]:
    return [
        workflow.name,
        workflow.latest_version,
        workflow.versions,
        _aliases(workflow.aliases),
        short_time(workflow.updated_at),
    ]


def _version_row(version: Version) -> list[object]:
    return [
        version.version,
        short_time(version.created_at),
        " ".join(version.aliases),
        version.content_hash[:12],
    ]


def _aliases(aliases: dict[str, ShownWeights]) -> str:
    return " ".join(
        f"{alias}={_weights(weights)}" for alias, weights in aliases.items() if alias != "latest"
    )


def _weights(weights: ShownWeights) -> str:
    if len(weights) == 1:
        return next(iter(weights))
    return ",".join(f"{version}:{share}" for version, share in weights.items())


@click.group(
    cls=CommandGroup,
    epilog="""Examples:

\b
  penstock alias set report stable 3
  penstock alias remove report stable""",
)
def alias() -> None:
    """Names for versions, such as report@stable."""


@alias.command(
    "set",
    epilog="""Examples:

\b
  penstock alias set report stable 3
  penstock alias set report stable 3=90,4=10""",
)
@click.argument("name", metavar="NAME")
@click.argument("alias_name", metavar="ALIAS")
@click.argument("target", metavar="VERSION|SHARES")
@as_json
@server_options
def set_alias(name: str, alias_name: str, target: str, **options: Any) -> None:
    """Point NAME@ALIAS at a version.

    With SHARES, such as 3=90,4=10, several versions each get a share of the executions.
    """
    weights = _read_target(target)
    answer = ask(options, lambda client: client.set_alias(name, alias_name, weights=weights))
    if options["as_json"]:
        print_json(answer)
        return
    from penstock.cli.safe_text import one_line
    from penstock.views.workflows import Alias

    stored = decode(answer, Alias)
    print(one_line(f"{stored.name}@{stored.alias} is {_weights(stored.weights)}"))


def _read_target(target: str) -> dict[int, int]:
    if target.isdecimal():
        return {int(target): 100}
    shares = [SHARE.fullmatch(part.strip()) for part in target.split(",")]
    if not all(shares):
        raise click.BadParameter(
            "must be a version such as 3, or shares such as 3=90,4=10", param_hint="VERSION"
        )
    return {int(share[1]): int(share[2]) for share in shares if share}


@alias.command("remove", epilog="Example:\n\n\b\n  penstock alias remove report stable")
@click.argument("name", metavar="NAME")
@click.argument("alias_name", metavar="ALIAS")
@as_json
@server_options
def remove_alias(name: str, alias_name: str, **options: Any) -> None:
    """Remove the alias NAME@ALIAS. Executions that were started with it go on."""
    from penstock.cli.safe_text import one_line

    ask(options, lambda client: client.remove_alias(name, alias_name))
    if options["as_json"]:
        print_json({"workflow": name, "alias": alias_name, "removed": True})
        return
    print(one_line(f"{name}@{alias_name} is removed"))


@click.command(
    short_help="Show live workers and orchestrators, and the queues.",
    epilog="Example:\n\n\b\n  penstock workers --json | jq '.queues[] | select(.waiting > 100)'",
)
@as_json
@server_options
def workers(**options: Any) -> None:
    """Show the live workers and orchestrators, and how many tasks wait in the queues."""

    async def read_fleet(client: Client) -> dict[str, list[dict[str, Any]]]:
        return {
            "workers": await client.workers(),
            "orchestrators": await client.orchestrators(),
            "queues": await client.queues(),
        }

    fleet = ask(options, read_fleet)
    if options["as_json"]:
        print_json(fleet)
        return
    from penstock.cli.tables import show_table

    for kind, items in fleet.items():
        if kind != "workers":
            print()
        if not items:
            print(f"no {kind}")
            continue
        # The running tasks of a worker are too long for a table; --json has them.
        columns = [name for name in items[0] if name != "tasks"]
        heads = [name.replace("_", " ") for name in columns]
        rows = [[_cell(item.get(name)) for name in columns] for item in items]
        show_table(heads, rows, whole=("worker id", "name", "queue"))


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
