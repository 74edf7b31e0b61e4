"""`penstock purge`: deletes executions that ended long ago."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.moments import age_seconds
from penstock.cli.remote import as_json, print_json

if TYPE_CHECKING:
    from penstock.config import Settings

EPILOG = """Examples:

\b
  penstock purge --older-than 30d --dry-run
  penstock purge --older-than 12h --store sqlite:///work.db
  penstock purge --older-than 30d --database postgresql://penstock@db/penstock"""


@click.command(short_help="Delete executions that ended long ago.", epilog=EPILOG)
@click.option(
    "--older-than",
    required=True,
    metavar="AGE",
    help="Age since they ended, or were created and never triggered: 45m, 12h, 30d, 8w.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
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
    """Delete executions that ended long ago, with everything that belongs to them.

    That is their history, outputs, dead letters and large values. Executions that have waited for
    their trigger for so long are deleted too. Running executions stay, and so do outputs that a
    younger retry has reused. PostgreSQL may be in use meanwhile, and its own clock counts; a SQLite
    file must not be in use.
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
        print_json({"store": where, "dry_run": options["dry_run"], **counts})
        return
    _print_counts(where, counts, dry_run=options["dry_run"])


def seconds_of(age: str) -> float:
    seconds = age_seconds(age)
    if seconds is None:
        raise click.BadParameter(
            f"{age!r} is not an age such as 45m, 12h, 30d or 8w", param_hint="'--older-than'"
        )
    return seconds


def _purge(
    settings: Settings, seconds: float, *, in_file: bool, in_database: bool, dry_run: bool
) -> tuple[str, dict[str, int]]:
    """Delete, and return where that was and how many of each kind."""
    from penstock.config import STORE_SCHEMES, hide_password

    scheme, _, rest = settings.store.partition("://")
    if scheme not in STORE_SCHEMES and not in_database:
        return hide_password(settings.store), _purge_installed(settings, seconds, dry_run=dry_run)
    if settings.database is not None and not in_file:
        return hide_password(settings.database), _purge_database(settings, seconds, dry_run=dry_run)
    from penstock.errors import SettingsError

    if scheme != "sqlite":
        raise SettingsError(
            "finished executions are in PostgreSQL; name it with --database, or PENSTOCK_DATABASE"
        )
    from penstock.stores.object_blobs import ObjectBlobs, is_object_store
    from penstock.stores.sqlite.purging import purge as purge_file

    # The times in a file were written by the host's clock.
    before = time.time() - seconds
    file = Path(rest[1:])
    if is_object_store(settings.blobs):
        objects = ObjectBlobs(str(settings.blobs))
        return settings.store, purge_file(file, before, objects=objects, dry_run=dry_run)._asdict()
    blobs = Path(settings.blobs) if settings.blobs else None
    return settings.store, purge_file(file, before, blobs=blobs, dry_run=dry_run)._asdict()


def _purge_installed(settings: Settings, seconds: float, *, dry_run: bool) -> dict[str, int]:
    """Purge a store of another package, which deletes executions itself."""
    from penstock.errors import SettingsError
    from penstock.stores.opening import open_stores

    if dry_run:
        raise SettingsError(
            "only SQLite and PostgreSQL support --dry-run; leave it out for this store"
        )

    async def purge_stores() -> dict[str, int]:
        stores = open_stores(settings.store, settings)
        try:
            await stores.open()
            return {"executions": await stores.forget(stores.hot.now() - seconds)}
        finally:
            await stores.close()

    return asyncio.run(purge_stores())


def _purge_database(settings: Settings, seconds: float, *, dry_run: bool) -> dict[str, int]:
    from penstock.errors import SettingsError
    from penstock.stores.object_blobs import ObjectBlobs

    try:
        from penstock.stores.postgres.purging import purge as purge_database
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"PostgreSQL needs {error.name}; install it with pip install 'penstock[scale]'"
        ) from None

    objects = ObjectBlobs(settings.blobs) if settings.blobs else None
    deleted = purge_database(str(settings.database), seconds, objects=objects, dry_run=dry_run)
    if dry_run:
        return {"executions": deleted.executions}
    return {
        "executions": deleted.executions,
        "letters": deleted.dead_letters,
        "blobs": deleted.blobs,
    }


def _print_counts(where: str, counts: dict[str, int], *, dry_run: bool) -> None:
    from penstock.cli.safe_text import counted

    deleted = counted(counts["executions"], "execution")
    if counts.get("blobs"):
        deleted += f" and {counted(counts['blobs'], 'large value')}"
    if counts.get("blob_bytes"):
        deleted += f" ({counts['blob_bytes']:,} bytes)"
    outcome = "would be deleted" if dry_run else "deleted"
    print(f"{where}: {deleted} {outcome}")
