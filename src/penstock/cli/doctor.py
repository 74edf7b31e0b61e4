"""`penstock doctor`: the settings in force, and whether what they name is there."""

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

Exit codes: 0 nothing is wrong; 1 a check failed."""


@click.command(epilog=EPILOG)
@click.option("--store", metavar="URL", help="Look at this one. Default: PENSTOCK_STORE.")
@click.option(
    "--database", metavar="URL", help="With Redis: its PostgreSQL. Default: PENSTOCK_DATABASE."
)
@as_json
@server_options
def doctor(**options: Any) -> int:
    """Print the settings in force, secrets hidden, and check them: stores, the server, versions, clocks, lag."""
    from penstock.config import Settings, is_redis

    settings = Settings.load({"store": options["store"], "database": options["database"]})
    named = click.get_current_context().get_parameter_source("url") is not ParameterSource.DEFAULT
    stores = (
        check_servers(settings)
        if is_redis(settings.store)
        else [_store(settings), *_files(settings)]
    )
    checks = [_versions(), *stores, *ask(options, lambda client: _server(client, named=named))]
    if options["as_json"]:
        shown = [{"check": it.name, "outcome": it.outcome, "text": it.text} for it in checks]
        print_json({"settings": settings.describe(), "url": options["url"], "checks": shown})
    else:
        _print(settings.describe(), checks)
    return int(any(check.outcome == "failed" for check in checks))


def _print(settings: Mapping[str, Any], checks: list[Check]) -> None:
    from penstock.cli.safe_text import json_text
    from penstock.cli.tables import show_table

    rows = [
        [name, value if isinstance(value, str) else json_text(value)]
        for name, value in settings.items()
    ]
    show_table(["setting", "value"], rows)
    print()
    show_table(["check", "outcome", ""], [list(check) for check in checks])


def _versions() -> Check:
    from penstock import __version__

    text = f"penstock {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return Check("versions", "ok", text)


def _store(settings: Settings) -> Check:
    """Opened only where it exists already: looking must not make a file."""
    from penstock.config import STORE_SCHEMES, hide_password, scheme_of
    from penstock.errors import PenstockError, StoreLocked
    from penstock.stores.installed import is_shared
    from penstock.stores.opening import open_stores

    async def look() -> None:
        stores = open_stores(settings.store, settings)
        try:
            if (
                scheme_of(settings.store) not in STORE_SCHEMES
            ):  # ours say whether they can be opened before this
                await stores.open()
        finally:
            await stores.close()

    shown = hide_password(settings.store)
    path = Path(settings.store.removeprefix("sqlite:///"))
    if settings.store.startswith("sqlite:") and not path.exists():
        if not path.absolute().parent.is_dir():
            return Check(
                "store",
                "failed",
                f"{shown}: the folder {path.absolute().parent} doesn't exist; create it",
            )
        return Check("store", "ok", f"{shown} isn't there yet; the first start makes it")
    try:
        asyncio.run(look())
    except StoreLocked as error:
        return Check("store", "note", str(error).partition(";")[0])
    except PenstockError as error:
        return Check("store", "failed", str(error))
    alone = "" if is_shared(settings.store) else "; nobody else uses it"
    return Check("store", "ok", f"{shown} can be opened{alone}")


def _files(settings: Settings) -> list[Check]:
    """Files of a store that other users of this machine may read: those of earlier versions were made so."""
    path = Path(settings.store.removeprefix("sqlite:///"))
    if not settings.store.startswith("sqlite:") or not path.exists():
        return []
    path = path.resolve()
    files = [
        each
        for each in path.parent.glob(f"{glob.escape(path.name)}*")
        if each.stat().st_mode & 0o077
    ]
    if not files:
        return [Check("files", "ok", "only this account may read the store's files")]
    names = ", ".join(each.name for each in sorted(files))
    return [
        Check(
            "files", "note", f"others on this machine may read {names}; chmod go-rwx keeps them out"
        )
    ]


async def _server(client: Client, *, named: bool) -> list[Check]:
    from penstock.errors import PenstockError, Unreachable

    before = datetime.now(UTC)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            health = await client.health()
    except TimeoutError:
        return [
            Check("server", "failed", f"{client.url} didn't answer within {TIMEOUT_SECONDS:g} s")
        ]
    except Unreachable as error:
        return [Check("server", "failed" if named else "note", str(error))]
    except PenstockError as error:
        return [Check("server", "failed", str(error))]
    bad = [
        f"{name} ({check['detail']})" if "detail" in check else name
        for name, check in health.get("checks", {}).items()
        if not check.get("ok")
    ]
    text = f"{client.url} answers" + (f", but not well: {', '.join(bad)}" if bad else "")
    found = [
        Check("server", "failed" if bad else "ok", text),
        _server_version(health),
        _clock(health, before),
    ]
    return [check for check in found if check is not None]


def _server_version(health: Mapping[str, Any]) -> Check | None:
    from penstock import __version__

    theirs = health.get("version")
    if theirs is None:
        return None
    same = theirs == __version__
    return Check(
        "server version",
        "ok" if same else "note",
        f"{theirs}" + ("" if same else f"; here it is {__version__}"),
    )


def _clock(health: Mapping[str, Any], before: datetime) -> Check | None:
    """The server looked at its clock between our two looks; only what lies outside of these is a difference."""
    if "time" not in health:
        return None
    after, theirs = datetime.now(UTC), datetime.fromisoformat(health["time"])
    seconds = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    if seconds <= CLOCK_SECONDS_MAX:
        return Check("clock", "ok", "the server's clock agrees with this one")
    return Check(
        "clock",
        "note",
        f"the server's clock differs by {seconds:.0f} s; times in lists are the server's",
    )
