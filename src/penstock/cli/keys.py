"""`penstock keys`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from penstock.service.keys import Keys
    from penstock.stores.records import ApiKey

Answer = TypeVar("Answer")

EPILOG = """Examples:

\b
  penstock keys create --scope submit --name ci
  penstock keys list
  penstock keys revoke 3f0c9a1be274"""
SCOPES = ["read", "submit", "operate", "admin"]
"""As in service/keys.py, which the help needn't load."""

_store = click.option(
    "--store", metavar="URL", help="Default: PENSTOCK_STORE, or sqlite:///penstock.db."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_debug = click.option("--debug", is_flag=True, help="Show tracebacks.")


@click.group(epilog=EPILOG)
def keys() -> None:
    """API keys: who may use a service that isn't bound to loopback.

    They are read from and written to the store itself, also while a server has it open.
    """


@keys.command(epilog="Example:\n\n\b\n  KEY=$(penstock keys create --scope submit)")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    help="What it may: each includes those before it. Repeatable.",
)
@click.option(
    "--name", help="What it is for; lists and the audit log show it. Default: its scopes."
)
@_store
@_json
@_debug
def create(
    scopes: tuple[str, ...],
    name: str | None,
    store: str | None,
    *,
    as_json: bool,
    debug: bool,  # noqa: ARG001 -- the app looks at it
) -> None:
    """Make a key and print it. It is shown this once: the store has only its hash."""
    from penstock.service.keys import check_key

    called = " ".join(scopes) if name is None else name
    check_key(called, scopes)  # before a store is opened: a mistake leaves no file behind
    key, token = _with_keys(store, lambda keys: keys.create(called, scopes), make=True)
    if as_json:
        _print_json({"id": key.id, "name": key.name, "scopes": list(key.scopes), "key": token})
        return
    print(token, flush=True)
    print(
        f"Keep it: it is not shown again. 'penstock keys revoke {key.id}' ends it.", file=sys.stderr
    )


@keys.command("list", epilog="Example:\n\n\b\n  penstock keys list --json | jq '.items[].name'")
@_store
@_json
@_debug
def list_keys(store: str | None, *, as_json: bool, debug: bool) -> None:  # noqa: ARG001
    """All keys, revoked ones too, the oldest first."""
    found = _with_keys(store, lambda keys: keys.list())
    if as_json:
        _print_json({"items": [_shown(key) for key in found]})
        return
    _print_table([("ID", "SCOPES", "CREATED", "REVOKED", "NAME"), *[_row(key) for key in found]])


@keys.command(epilog="Example:\n\n\b\n  penstock keys revoke 3f0c9a1be274")
@click.argument("key_id", metavar="ID")
@_store
@_debug
def revoke(key_id: str, store: str | None, *, debug: bool) -> None:  # noqa: ARG001
    """End a key. A running server stops taking it within two seconds."""
    from penstock.errors import NotFound

    if key_id.startswith("pk_"):  # whoever finds a leaked key has the whole of it
        key_id = key_id.split("_")[1]
    if not _with_keys(store, lambda keys: keys.revoke(key_id)):
        raise NotFound(
            f"there is no key {key_id} that could be revoked; 'penstock keys list' shows what there is"
        )
    print(f"revoked {key_id}")


def _with_keys(
    store: str | None, work: Callable[[Keys], Awaitable[Answer]], *, make: bool = False
) -> Answer:
    import asyncio

    from penstock.config import Settings
    from penstock.service.key_files import open_keys

    async def call() -> Answer:
        async with open_keys(Settings.load({"store": store}), make=make) as opened:
            return await work(opened)

    return asyncio.run(call())


def _shown(key: ApiKey) -> dict[str, Any]:
    from penstock.orchestrator.view import time_text

    times = {"created_at": time_text(key.created_at), "revoked_at": time_text(key.revoked_at)}
    return {"id": key.id, "name": key.name, "scopes": list(key.scopes), **times}


def _row(key: ApiKey) -> tuple[str, ...]:
    from penstock.cli.safe_text import one_line

    shown = _shown(key)
    times = [(shown[at] or "-")[:19].replace("T", " ") for at in ("created_at", "revoked_at")]
    return key.id, " ".join(key.scopes), *times, one_line(key.name)


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _print_json(value: dict[str, Any]) -> None:
    from penstock.cli.safe_text import json_text

    print(json_text(value))
