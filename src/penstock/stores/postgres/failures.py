"""Errors of psycopg, translated into store errors: whether to try again later, or not."""

from __future__ import annotations

import psycopg
from psycopg import errors

from penstock.errors import SchemaMismatch, StoreError, StoreUnavailable
from penstock.stores.postgres.schema import MIGRATE

UNAVAILABLE = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,
)


class Unknowable(StoreError):
    """A value that no row can have: text with U+0000 or half a surrogate pair, a huge number."""


class Broken(StoreUnavailable):
    """The connection ended before the answer came."""


def explained(error: Exception, where: str, *, broken: bool = False) -> StoreError:
    # without an SQL state, psycopg itself refused the value
    refused = isinstance(error, psycopg.DataError) and error.sqlstate is None
    if refused or isinstance(error, (UnicodeEncodeError, errors.NumericValueOutOfRange)):
        return Unknowable(f"{where} can't hold this value: {error}")
    text = " ".join(str(error).split())
    if isinstance(error, (errors.UndefinedTable, errors.UndefinedColumn)):
        return SchemaMismatch(
            f"{where} doesn't have the schema of this version of Penstock ({text}); {MIGRATE}"
        )
    if isinstance(error, errors.ProgramLimitExceeded):
        return StoreError(f"{where}: {text}")
    if isinstance(error, UNAVAILABLE):
        kind = Broken if broken else StoreUnavailable
        return kind(f"{where} is not available: {text}")
    return StoreError(f"{where}: {text}")
