"""`penstock migrate`: creates and updates the tables in PostgreSQL."""

from __future__ import annotations

import click

from penstock.cli.remote import as_json, print_json

EPILOG = """Examples:

\b
  penstock migrate --database postgresql://penstock@db/penstock
  penstock migrate --database postgresql://penstock@db/penstock --partitions 32"""


@click.command(epilog=EPILOG)
@click.option(
    "--database", metavar="URL", help="postgresql://…; default: PENSTOCK_DATABASE, or DATABASE_URL."
)
@click.option(
    "--partitions",
    type=int,
    metavar="N",
    help="For a new database: the number of partitions, fixed from then on. Default: 8.",
)
@as_json
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def migrate(
    database: str | None,
    partitions: int | None,
    *,
    as_json: bool,
    debug: bool,  # noqa: ARG001 -- the app looks at it
) -> None:
    """Create or update the tables in PostgreSQL.

    Run it once before the first start, and after each update of Penstock. Running it again, or
    several times at once, does no harm. SQLite files don't need it.
    """
    from penstock.config import Settings, hide_password
    from penstock.errors import SettingsError

    settings = Settings.load(
        {"database": database, "partitions": partitions}, application_urls=True
    )
    if settings.database is None:
        raise SettingsError(
            "no database is set; name one with --database postgresql://…, or PENSTOCK_DATABASE"
        )
    run_migration(settings.database, settings.partitions)
    database_url = hide_password(settings.database)
    if as_json:
        from penstock.stores.postgres.schema import SCHEMA

        print_json({"database": database_url, "schema": SCHEMA})
        return
    print(f"{database_url} is up to date")


def run_migration(database: str, partitions: int | None) -> None:
    from penstock.errors import SettingsError

    try:
        from penstock.stores.postgres.migrating import migrate as migrate_database
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"PostgreSQL needs {error.name}; install it with pip install 'penstock[scale]'"
        ) from None
    migrate_database(database, partitions)
