"""The schema that this version of Penstock needs, and the check of a database's schema."""

from __future__ import annotations

from penstock.errors import SchemaMismatch

SCHEMA = "0007"
"""The last migration. Numbers of four digits: a newer one sorts behind."""
VERSION_TABLE = "penstock_version"
MIGRATE = "run `penstock migrate`"


def check_schema(version: str | None, where: str) -> None:
    """Raises `SchemaMismatch` unless a database is at this version's schema."""
    if version is None:
        raise SchemaMismatch(f"{where} has no Penstock schema; {MIGRATE}")
    if version > SCHEMA:
        raise SchemaMismatch(
            f"{where} has schema {version}, newer than this version of Penstock knows ({SCHEMA}); "
            "update Penstock"
        )
    if version < SCHEMA:
        raise SchemaMismatch(
            f"{where} has schema {version}, this version of Penstock needs {SCHEMA}; {MIGRATE}"
        )
