"""`penstock put`, `versions`, `alias`, `workers`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.remote import as_json, ask, gather, print_json, server_options, short_time

if TYPE_CHECKING:
    from penstock.client import Client

SHARE = re.compile(r"(\d{1,9})=(\d{1,7})")


@click.command(epilog="Examples:\n\n\b\n  penstock put report.json\n  penstock put - < report.json")
@click.argument("file", metavar="FILE")
@click.option("--strict", is_flag=True, help="Unknown fields are errors.")
@click.option(
    "--allow-unknown-handlers",
    is_flag=True,
    help="Handlers that no worker has registered yet are fine.",
)
@as_json
@server_options
def put(file: str, *, strict: bool, allow_unknown_handlers: bool, **options: Any) -> None:
    """Store the workflow in FILE (- for standard input) under its name, as its latest version.

    Whoever starts the name gets this version from now on, so the key needs the scope operate.
    `penstock submit FILE` starts a document without storing it under its name.
    """
    from penstock.cli import reading
    from penstock.cli.safe_text import one_line
    from penstock.config import Settings

    document = reading.read_file(file, reading.document_limits(Settings.load()))
    if not isinstance(document, dict):
        raise reading.Refused(
            f'{reading.shown_name(file)}: a workflow is an object, such as {{"nodes": […]}}'
        )
    stored = ask(
        options,
        lambda client: client.put_workflow(
            document, strict=strict, allow_unknown_handlers=allow_unknown_handlers
        ),
    )
    if options["as_json"]:
        print_json(stored)
        return
    for warning in stored["warnings"]:
        print(one_line(f"warning: {warning['message']}"), file=sys.stderr)
    print(one_line(f"{stored['name']}@{stored['version']}"))


@click.command(epilog="Examples:\n\n\b\n  penstock versions\n  penstock versions report --json")
@click.argument("name", metavar="[NAME]", required=False)
@as_json
@server_options
def versions(name: str | None, **options: Any) -> None:
    """List the versions of the workflow NAME, the newest first; without NAME, all workflows."""

    async def listed(client: Client) -> list[dict[str, Any]]:
        return (await gather(client.workflows() if name is None else client.versions(name)))[0]

    items = ask(options, listed)
    if options["as_json"]:
        print_json({"items": items})
        return
    from penstock.cli.tables import show_table

    if not items:
        print("No workflows.", file=sys.stderr)
    elif name is None:
        rows = [
            [
                it["name"],
                it["latest_version"],
                it["versions"],
                _aliases(it["aliases"]),
                short_time(it["updated_at"]),
            ]
            for it in items
        ]
        show_table(["workflow", "latest", "versions", "aliases", "updated"], rows)
    else:
        rows = [
            [
                it["version"],
                short_time(it["created_at"]),
                " ".join(it["aliases"]),
                it["content_hash"][:12],
            ]
            for it in items
        ]
        show_table(["version", "created", "aliases", "content"], rows)


def _aliases(aliases: dict[str, dict[str, int]]) -> str:
    return " ".join(
        f"{alias}={_weights(weights)}" for alias, weights in aliases.items() if alias != "latest"
    )


def _weights(weights: dict[str, int]) -> str:
    if len(weights) == 1:
        return next(iter(weights))
    return ",".join(f"{version}:{share}" for version, share in weights.items())


@click.group(
    epilog="Examples:\n\n\b\n  penstock alias set report stable 3\n  penstock alias remove report stable"
)
def alias() -> None:
    """Names for versions, such as report@stable."""


@alias.command(
    "set",
    epilog="Examples:\n\n\b\n  penstock alias set report stable 3\n  penstock alias set report stable 3=90,4=10",
)
@click.argument("name", metavar="NAME")
@click.argument("alias_name", metavar="ALIAS")
@click.argument("target", metavar="VERSION|SHARES")
@as_json
@server_options
def set_alias(name: str, alias_name: str, target: str, **options: Any) -> None:
    """Let NAME@ALIAS mean a version; or with SHARES, each of several for a share of the executions."""
    weights = _read_target(target)
    made = ask(options, lambda client: client.set_alias(name, alias_name, weights=weights))
    if options["as_json"]:
        print_json(made)
        return
    from penstock.cli.safe_text import one_line

    print(one_line(f"{made['name']}@{made['alias']} is {_weights(made['weights'])}"))


def _read_target(target: str) -> dict[int, int]:
    if target.isdecimal():
        return {int(target): 100}
    shares = [SHARE.fullmatch(part.strip()) for part in target.split(",")]
    if not all(shares):
        raise click.BadParameter(
            "a version such as 3, or shares such as 3=90,4=10", param_hint="VERSION"
        )
    return {int(share[1]): int(share[2]) for share in shares if share}


@alias.command("remove", epilog="Example:\n\n\b\n  penstock alias remove report stable")
@click.argument("name", metavar="NAME")
@click.argument("alias_name", metavar="ALIAS")
@server_options
def remove_alias(name: str, alias_name: str, **options: Any) -> None:
    """Remove NAME@ALIAS. Executions that were started with it go on."""
    from penstock.cli.safe_text import one_line

    ask(options, lambda client: client.remove_alias(name, alias_name))
    print(one_line(f"{name}@{alias_name} is removed"))


@click.command(
    epilog="Example:\n\n\b\n  penstock workers --json | jq '.queues[] | select(.waiting > 100)'"
)
@as_json
@server_options
def workers(**options: Any) -> None:
    """Show which workers and orchestrators are alive, and what waits in the queues."""

    async def looked(client: Client) -> dict[str, list[dict[str, Any]]]:
        return {
            "workers": await client.workers(),
            "orchestrators": await client.orchestrators(),
            "queues": await client.queues(),
        }

    found = ask(options, looked)
    if options["as_json"]:
        print_json(found)
        return
    from penstock.cli.tables import show_table

    for kind, items in found.items():
        if kind != "workers":
            print()
        if not items:
            print(f"no {kind}")
            continue
        columns = [name for name in items[0] if name != "tasks"]  # with --json they are all there
        rows = [[_cell(item.get(name)) for name in columns] for item in items]
        show_table(
            [name.replace("_", " ") for name in columns], rows, whole=("worker id", "name", "queue")
        )


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
