"""`penstock keys`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.command_groups import CommandGroup
from penstock.cli.remote import as_json as json_option
from penstock.cli.remote import print_json

if TYPE_CHECKING:
    from penstock.service.keys import Keys
    from penstock.stores.records import ApiKey

Answer = TypeVar("Answer")
Command = TypeVar("Command", bound=Callable[..., Any])

EPILOG = """Examples:

\b
  penstock keys create --scope submit --name ci
  penstock keys list
  penstock keys revoke 3f0c9a1be274"""
SCOPES = ["read", "submit", "approve", "operate", "admin"]
"""The same as in service/keys.py, which the help need not import."""


def _store_options(command: Command) -> Command:
    options = (
        click.option(
            "--store", metavar="URL", help="Default: PENSTOCK_STORE, or sqlite:///penstock.db."
        ),
        click.option(
            "--database",
            metavar="URL",
            help="With Redis: its PostgreSQL. Default: PENSTOCK_DATABASE.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


_debug = click.option("--debug", is_flag=True, help="Show tracebacks.")


@click.group(cls=CommandGroup, short_help="Create, list and revoke API keys.", epilog=EPILOG)
def keys() -> None:
    """Manage API keys, which a service needs that isn't bound to loopback.

    They are read from and written to the store itself, even while a server has it open.
    """


@keys.command(epilog="Example:\n\n\b\n  KEY=$(penstock keys create --scope submit)")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    help="What it allows: each scope includes those before it. Repeatable.",
)
@click.option(
    "--name", help="What the key is for, shown in lists and the audit log. Default: its scopes."
)
@_store_options
@json_option
@_debug
def create(
    scopes: tuple[str, ...],
    name: str | None,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Create a key and print it. It is shown only once: the store has only its hash."""
    from penstock.service.keys import check_key

    key_name = " ".join(scopes) if name is None else name
    # Before a store is opened, so that a mistake leaves no file behind.
    check_key(key_name, scopes)
    key, token = _with_keys(options, lambda keys: keys.create(key_name, scopes), make=True)
    if as_json:
        import msgspec

        from penstock.views.access import created_key_view

        print_json(msgspec.to_builtins(created_key_view(key, token)))
        return
    print(token, flush=True)
    revoke_command = f"penstock keys revoke {key.id}{_store_flags(options)}"
    print(f"Save it: it is not shown again. '{revoke_command}' revokes it.", file=sys.stderr)


@keys.command("list", epilog="Example:\n\n\b\n  penstock keys list --json | jq '.items[].name'")
@_store_options
@json_option
@_debug
def list_keys(*, as_json: bool, **options: Any) -> None:
    """List all keys, also revoked ones, the oldest first."""
    all_keys = _with_keys(options, lambda keys: keys.list())
    if as_json:
        import msgspec

        from penstock.views.access import listed_key_view

        views = [listed_key_view(key) for key in all_keys]
        print_json({"items": msgspec.to_builtins(views)})
        return
    head = ("ID", "SCOPES", "CREATED", "REVOKED", "NAME")
    _print_table([head, *[_key_row(key) for key in all_keys]])


@keys.command(epilog="Example:\n\n\b\n  penstock keys revoke 3f0c9a1be274")
@click.argument("key_id", metavar="ID")
@_store_options
@json_option
@_debug
def revoke(key_id: str, *, as_json: bool, **options: Any) -> None:
    """Revoke a key. A running server stops accepting it within two seconds."""
    from penstock.errors import NotFound

    # A leaked key is at hand as a whole; its second part is the id.
    if key_id.startswith("pk_"):
        key_id = key_id.split("_")[1]
    if not _with_keys(options, lambda keys: keys.revoke(key_id)):
        list_command = f"penstock keys list{_store_flags(options)}"
        raise NotFound(
            f"there is no key {key_id} that could be revoked; '{list_command}' lists the keys"
        )
    if as_json:
        print_json({"id": key_id, "revoked": True})
        return
    print(f"revoked {key_id}")


def _store_flags(options: Mapping[str, Any]) -> str:
    """The flags by which this command found its store, for another command in a hint."""
    from penstock.config import hide_password

    flags = ""
    for name in ("store", "database"):
        if options[name] is not None:
            flags += f" --{name} {hide_password(options[name])}"
    return flags


def _with_keys(
    options: Mapping[str, Any],
    work: Callable[[Keys], Awaitable[Answer]],
    *,
    make: bool = False,
) -> Answer:
    import asyncio

    from penstock.config import Settings
    from penstock.service.key_files import open_keys

    settings = Settings.load({"store": options["store"], "database": options["database"]})

    async def call() -> Answer:
        async with open_keys(settings, make=make) as opened:
            return await work(opened)

    return asyncio.run(call())


def _key_row(key: ApiKey) -> tuple[str, ...]:
    from penstock.cli.safe_text import one_line
    from penstock.views.access import listed_key_view

    view = listed_key_view(key)
    times = [(at or "-")[:19].replace("T", " ") for at in (view.created_at, view.revoked_at)]
    return key.id, " ".join(key.scopes), *times, one_line(key.name)


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())
