"""`penstock doctor`: prints the settings in force, and checks the servers they name."""

from __future__ import annotations

import asyncio
import glob
import platform
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from penstock.cli.checking import CLOCK_SECONDS_MAX, TIMEOUT_SECONDS, Check, check_servers
from penstock.cli.remote import as_json, ask, print_json, server_options

if TYPE_CHECKING:
    from penstock.client import Client
    from penstock.config import Settings

EPILOG = """Examples:

\b
  penstock doctor
  penstock doctor --store redis://localhost:6379/0 --database postgresql://localhost/penstock
  penstock doctor --url http://workflows.internal:8000 --json

Exit codes: 0 no check failed; 1 a check failed."""


@click.command(
    short_help="Print the settings in force, and check stores and server.", epilog=EPILOG
)
@click.option("--store", metavar="URL", help="The store to check. Default: PENSTOCK_STORE.")
@click.option(
    "--database", metavar="URL", help="With Redis: its PostgreSQL. Default: PENSTOCK_DATABASE."
)
@as_json
@server_options
def doctor(**options: Any) -> int:
    """Print the settings in force, and check stores, server, versions, clocks and lag.

    Secrets in the settings are hidden.
    """
    from penstock.config import Settings, is_redis

    settings = Settings.load({"store": options["store"], "database": options["database"]})
    named = click.get_current_context().get_parameter_source("url") is not ParameterSource.DEFAULT
    checks = [_check_versions()]
    if is_redis(settings.store):
        checks += check_servers(settings)
    else:
        checks += [_check_store(settings), *_check_files(settings)]
    checks += ask(options, lambda client: _check_server(client, named=named))

    if options["as_json"]:
        listed = [
            {"check": check.name, "outcome": check.outcome, "text": check.text} for check in checks
        ]
        print_json({"settings": settings.describe(), "url": options["url"], "checks": listed})
    else:
        _print_tables(settings.describe(), checks)
    return int(any(check.outcome == "failed" for check in checks))


def _print_tables(settings: Mapping[str, Any], checks: list[Check]) -> None:
    from penstock.cli.safe_text import json_text
    from penstock.cli.tables import show_table

    rows = [
        [name, value if isinstance(value, str) else json_text(value)]
        for name, value in settings.items()
    ]
    show_table(["setting", "value"], rows)
    print()
    show_table(["check", "outcome", ""], [list(check) for check in checks])


def _check_versions() -> Check:
    from penstock import __version__

    python = f"Python {platform.python_version()}"
    sqlite = f"SQLite {sqlite3.sqlite_version}"
    return Check("versions", "ok", f"penstock {__version__}, {python}, {sqlite}")


def _check_store(settings: Settings) -> Check:
    """Open the store, if it exists already: a check must not create a file."""
    from penstock.config import STORE_SCHEMES, hide_password, scheme_of
    from penstock.errors import PenstockError, StoreLocked
    from penstock.stores.installed import is_shared
    from penstock.stores.opening import open_stores

    async def open_once() -> None:
        stores = open_stores(settings.store, settings)
        try:
            # Our own stores have said by now whether they can be opened.
            if scheme_of(settings.store) not in STORE_SCHEMES:
                await stores.open()
        finally:
            await stores.close()

    address = hide_password(settings.store)
    path = Path(settings.store.removeprefix("sqlite:///"))
    if settings.store.startswith("sqlite:") and not path.exists():
        folder = path.absolute().parent
        if not folder.is_dir():
            text = f"{address}: the folder {folder} doesn't exist; create it"
            return Check("store", "failed", text)
        return Check("store", "ok", f"{address} doesn't exist yet; the first start creates it")

    try:
        asyncio.run(open_once())
    except StoreLocked as error:
        return Check("store", "note", str(error).partition(";")[0])
    except PenstockError as error:
        return Check("store", "failed", str(error))

    alone = "" if is_shared(settings.store) else "; nobody else uses it"
    return Check("store", "ok", f"{address} can be opened{alone}")


def _check_files(settings: Settings) -> list[Check]:
    """Check whether other users may read the store's files, as earlier versions allowed."""
    path = Path(settings.store.removeprefix("sqlite:///"))
    if not settings.store.startswith("sqlite:") or not path.exists():
        return []
    path = path.resolve()
    store_files = path.parent.glob(f"{glob.escape(path.name)}*")
    open_files = [file for file in store_files if file.stat().st_mode & 0o077]
    if not open_files:
        return [Check("files", "ok", "only this account may read the store's files")]

    names = ", ".join(file.name for file in sorted(open_files))
    text = f"other users of this machine may read {names}; forbid it with chmod go-rwx"
    return [Check("files", "note", text)]


async def _check_server(client: Client, *, named: bool) -> list[Check]:
    from penstock.errors import PenstockError, Unreachable

    before = datetime.now(UTC)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            health = await client.health()
    except TimeoutError:
        text = f"{client.url} didn't answer within {TIMEOUT_SECONDS:g} s"
        return [Check("server", "failed", text)]
    except Unreachable as error:
        return [Check("server", "failed" if named else "note", str(error))]
    except PenstockError as error:
        return [Check("server", "failed", str(error))]

    failing: list[str] = []
    for name, check in health.get("checks", {}).items():
        if not check.get("ok"):
            detail = f" ({check['detail']})" if "detail" in check else ""
            failing.append(f"{name}{detail}")

    if failing:
        text = f"{client.url} answers, but these checks fail: {', '.join(failing)}"
        answer = Check("server", "failed", text)
    else:
        answer = Check("server", "ok", f"{client.url} answers")
    checks = [answer, _check_server_version(health), _check_clock(health, before)]
    return [check for check in checks if check is not None]


def _check_server_version(health: Mapping[str, Any]) -> Check | None:
    from penstock import __version__

    theirs = health.get("version")
    if theirs is None:
        return None
    if theirs == __version__:
        return Check("server version", "ok", f"{theirs}")
    return Check("server version", "note", f"{theirs}; here it is {__version__}")


def _check_clock(health: Mapping[str, Any], before: datetime) -> Check | None:
    """Compare the server's clock, read between `before` and now, with ours.

    Only what lies outside of these two times is a difference.
    """
    if "time" not in health:
        return None
    after = datetime.now(UTC)
    theirs = datetime.fromisoformat(health["time"])
    seconds = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    if seconds <= CLOCK_SECONDS_MAX:
        return Check("clock", "ok", "the server's clock agrees with this one")
    text = f"the server's clock differs by {seconds:.0f} s; times in lists are the server's"
    return Check("clock", "note", text)
