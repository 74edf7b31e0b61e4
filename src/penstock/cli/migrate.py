"""`penstock migrate`: the tables that Penstock needs in PostgreSQL."""

from __future__ import annotations

import click

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
    help="For a new database: how many parts. Default: 8; fixed then.",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def migrate(database: str | None, partitions: int | None, *, debug: bool) -> None:  # noqa: ARG001 -- the app looks at it
    """Create or update the tables in PostgreSQL.

    Once before the first start and after each update of Penstock.

    Doing it again does no harm, nor do several at once. SQLite files need none: they are made when
    they are opened.
    """
    from penstock.config import Settings, hide_password
    from penstock.errors import SettingsError

    settings = Settings.load(
        {"database": database, "partitions": partitions}, application_urls=True
    )
    if settings.database is None:
        raise SettingsError(
            "which database? name it with --database postgresql://…, or PENSTOCK_DATABASE"
        )
    run_migration(settings.database, settings.partitions)
    print(f"{hide_password(settings.database)} is up to date")


def run_migration(database: str, partitions: int | None) -> None:
    from penstock.errors import SettingsError

    try:
        from penstock.stores.postgres.migrating import migrate as migrate_database
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"PostgreSQL needs {error.name}; pip install 'penstock[scale]' brings it"
        ) from None
    migrate_database(database, partitions)
