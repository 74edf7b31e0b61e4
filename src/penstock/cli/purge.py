"""`penstock purge`: finished executions that are old enough."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.remote import as_json

if TYPE_CHECKING:
    from penstock.config import Settings

EPILOG = """Examples:

\b
  penstock purge --older-than 30d --dry-run
  penstock purge --older-than 12h --store sqlite:///work.db
  penstock purge --older-than 30d --database postgresql://penstock@db/penstock"""
AGE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@click.command(epilog=EPILOG)
@click.option(
    "--older-than",
    required=True,
    metavar="AGE",
    help="Since they ended, or were made and never triggered: 45m, 12h, 30d, 8w.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option(
    "--store",
    metavar="URL",
    help="sqlite:///FILE, or the store of a package. Default: PENSTOCK_STORE.",
)
@click.option(
    "--database", metavar="URL", help="postgresql://…; default: PENSTOCK_DATABASE, or DATABASE_URL."
)
@as_json
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def purge(older_than: str, store: str | None, database: str | None, **options: Any) -> None:
    """Delete executions that ended long ago, with their history, outputs, dead letters and large values.

    Those that wait for their trigger since then go, too. Nothing that runs goes, nor what a younger retry has kept of
    an older execution. PostgreSQL's own clock counts, and it may be in use meanwhile; a SQLite file must not.
    """
    from penstock.config import Settings

    seconds = seconds_of(older_than)
    settings = Settings.load({"store": store, "database": database}, application_urls=True)
    in_file = store is not None and store.startswith("sqlite:") and database is None
    in_database = database is not None
    where, counts = _purge(
        settings, seconds, in_file=in_file, in_database=in_database, dry_run=options["dry_run"]
    )
    if options["as_json"]:
        from penstock.cli.remote import print_json

        print_json({"store": where, "dry_run": options["dry_run"], **counts})
        return
    _say(where, counts, dry_run=options["dry_run"])


def seconds_of(age: str) -> float:
    given = AGE.fullmatch(age.strip().lower())
    if given is None:
        raise click.BadParameter(
            f"{age!r} isn't an age such as 45m, 12h, 30d or 8w", param_hint="'--older-than'"
        )
    return float(given[1]) * SECONDS[given[2]]


def _purge(
    settings: Settings, seconds: float, *, in_file: bool, in_database: bool, dry_run: bool
) -> tuple[str, dict[str, int]]:
    """Where, and how many of what."""
    from penstock.config import STORE_SCHEMES, hide_password

    scheme, _, rest = settings.store.partition("://")
    if scheme not in STORE_SCHEMES and not in_database:
        return hide_password(settings.store), _in_installed(settings, seconds, dry_run=dry_run)
    if settings.database is not None and not in_file:
        return hide_password(settings.database), _in_database(settings, seconds, dry_run=dry_run)
    from penstock.errors import SettingsError

    if scheme != "sqlite":
        raise SettingsError(
            "what ended is in PostgreSQL; name it with --database, or PENSTOCK_DATABASE"
        )
    from penstock.stores.sqlite.purging import purge as purge_file

    before = (
        time.time() - seconds
    )  # the host's clock is the one that a file's times were written by
    from penstock.stores.object_blobs import ObjectBlobs, is_object_store

    file = Path(rest[1:])
    if is_object_store(settings.blobs):
        objects = ObjectBlobs(str(settings.blobs))
        return settings.store, purge_file(file, before, objects=objects, dry_run=dry_run)._asdict()
    blobs = Path(settings.blobs) if settings.blobs else None
    return settings.store, purge_file(file, before, blobs=blobs, dry_run=dry_run)._asdict()


def _in_installed(settings: Settings, seconds: float, *, dry_run: bool) -> dict[str, int]:
    """In a store of another package, which deletes for itself."""
    from penstock.errors import SettingsError
    from penstock.stores.opening import open_stores

    if dry_run:
        raise SettingsError(
            "only a SQLite file and PostgreSQL can say what would go; leave --dry-run out"
        )

    async def purge_stores() -> dict[str, int]:
        stores = open_stores(settings.store, settings)
        try:
            await stores.open()
            return {"executions": await stores.forget(stores.hot.now() - seconds)}
        finally:
            await stores.close()

    return asyncio.run(purge_stores())


def _in_database(settings: Settings, seconds: float, *, dry_run: bool) -> dict[str, int]:
    from penstock.errors import SettingsError
    from penstock.stores.object_blobs import ObjectBlobs

    try:
        from penstock.stores.postgres.purging import purge as purge_database
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"PostgreSQL needs {error.name}; pip install 'penstock[scale]' brings it"
        ) from None

    objects = ObjectBlobs(settings.blobs) if settings.blobs else None
    gone = purge_database(str(settings.database), seconds, objects=objects, dry_run=dry_run)
    if dry_run:
        return {"executions": gone.executions}
    return {"executions": gone.executions, "letters": gone.dead_letters, "blobs": gone.blobs}


def _say(where: str, counts: dict[str, int], *, dry_run: bool) -> None:
    from penstock.cli.safe_text import counted

    gone = counted(counts["executions"], "execution")
    if counts.get("blobs"):
        gone += f" and {counted(counts['blobs'], 'large value')}"
    if counts.get("blob_bytes"):
        gone += f" ({counts['blob_bytes']:,} bytes)"
    print(f"{where}: {gone} would go" if dry_run else f"{where}: {gone} deleted")
