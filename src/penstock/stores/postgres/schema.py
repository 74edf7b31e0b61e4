"""Which schema this version of Penstock works with, and whether a database has it."""

from __future__ import annotations

from penstock.errors import SchemaMismatch

SCHEMA = "0003"
"""The last migration. Numbers of four digits: a newer one sorts behind."""
VERSION_TABLE = "penstock_version"
MIGRATE = "run `penstock migrate`"


def check_schema(found: str | None, where: str) -> None:
    """Raises `SchemaMismatch` unless a database is at this version's schema."""
    if found is None:
        raise SchemaMismatch(f"{where} has no Penstock schema; {MIGRATE}")
    if found > SCHEMA:
        raise SchemaMismatch(
            f"{where} has schema {found}, newer than this version of Penstock knows ({SCHEMA}); update Penstock"
        )
    if found < SCHEMA:
        raise SchemaMismatch(
            f"{where} has schema {found}, this version of Penstock needs {SCHEMA}; {MIGRATE}"
        )
