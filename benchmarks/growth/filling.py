"""Finished executions, written straight into the stores.

They are copies of one that the engine has run and archived itself.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from penstock.stores.base import partition_of
from penstock.stores.postgres.intents import COLUMNS, TYPES

CHUNK = 20_000
PER_SECOND = 10_000
LONG_AGO_SECONDS = 40 * 3600
"""How much older the first copy is than its model.

Each of a million copies is a tenth of a second younger than the last.
"""
STEP = 1000
Row = tuple[Any, ...]


def name_of(number: int) -> str:
    """As long as a real id, and in the same order as the numbers."""
    return f"00000000-0000-7000-8000-{number:012d}"


def fill_sqlite(path: Path, model: str, first: int, last: int) -> None:
    """Copies number `first` to `last - 1` of the execution `model`."""
    connection = sqlite3.connect(path, timeout=60)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA cache_size=-200000")
    connection.row_factory = sqlite3.Row
    row = dict(connection.execute("SELECT * FROM executions WHERE id = ?", (model,)).fetchone())
    changes = [
        model_change[0]
        for model_change in connection.execute(
            "SELECT change FROM changes WHERE n = ? ORDER BY id", (row["n"],)
        )
    ]
    insert = f"INSERT INTO executions ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"  # noqa: S608
    for start in range(first, last, CHUNK):
        rows: list[Row] = []
        changed: list[tuple[int, bytes]] = []
        for number in range(start, min(start + CHUNK, last)):
            copy, theirs = _copied(row, model, number)
            rows.append(tuple(copy.values()))
            changed += [(copy["n"], change.replace(model.encode(), theirs)) for change in changes]
        connection.executemany(insert, rows)
        connection.executemany("INSERT INTO changes (n, change) VALUES (?, ?)", changed)
        connection.commit()
    connection.execute("PRAGMA wal_checkpoint(RESTART)")
    connection.close()
    os.sync()  # or the next measurement waits for these pages


def _copied(row: dict[str, Any], model: str, number: int) -> tuple[dict[str, Any], bytes]:
    name, earlier = name_of(number), LONG_AGO_SECONDS - number * STEP / PER_SECOND
    theirs = name.encode()
    copy = {
        **row,
        "n": row["n"] - LONG_AGO_SECONDS * PER_SECOND + number * STEP,
        "id": name,
        "created_at": row["created_at"] - earlier,
        "ended_at": row["ended_at"] - earlier,
        "intent": row["intent"].replace(model.encode(), theirs),
    }
    return copy, theirs


def fill_postgres(database: str, model: str, first: int, last: int, partitions: int) -> None:
    """As `fill_sqlite`, by COPY.

    Rows of `executions` and of `segments`, as the archiver leaves them.
    """
    columns = ["n", "started_at", "ended_at", *COLUMNS.split(", ")]
    types = ["int8", "float8", "float8", *TYPES]
    with psycopg.connect(database, autocommit=True) as connection:
        select = sql.SQL("SELECT {} FROM executions WHERE id = %s").format(_names(columns))
        model_row = connection.execute(select, (model,), binary=True).fetchone()
        assert model_row is not None
        row = dict(zip(columns, model_row, strict=True))
        (segment,) = connection.execute(
            "SELECT generation, first, until, changes FROM segments WHERE n = %s",
            (row["n"],),
            binary=True,
        ).fetchall()
        start = _reserve(connection, last - first) - first
        with connection.transaction():
            rows = _executions(
                row, model, (start + number for number in range(first, last)), first, partitions
            )
            _copy_in(connection, "executions", columns, types, rows)
            segments = _segments(segment, model, start, range(first, last))
            _copy_in(
                connection,
                "segments",
                ["n", "generation", "first", "until", "changes"],
                ["int8", "int4", "int4", "int4", "bytea"],
                segments,
            )
        for table in ("executions", "segments"):
            connection.execute(sql.SQL("VACUUM ANALYZE {}").format(sql.Identifier(table)))
        connection.execute("CHECKPOINT")


def _reserve(connection: psycopg.Connection[Row], count: int) -> int:
    """The first of so many numbers that nobody else will be given."""
    sequence = "pg_get_serial_sequence('executions', 'n')"
    row = connection.execute(
        f"SELECT setval({sequence}, nextval({sequence}) + %s)", (count,)
    ).fetchone()
    assert row is not None
    return int(row[0]) - count


def _executions(
    row: dict[str, Any], model: str, numbers: Iterator[int], first: int, partitions: int
) -> Iterator[Row]:
    for number, n in enumerate(numbers, first):
        name, earlier = name_of(number), LONG_AGO_SECONDS - number * STEP / PER_SECOND
        yield tuple(
            {
                **row,
                "n": n,
                "id": name,
                "partition": partition_of(name, partitions),
                "created_at": row["created_at"] - earlier,
                "started_at": row["started_at"] - earlier,
                "ended_at": row["ended_at"] - earlier,
                "intent": row["intent"].replace(model.encode(), name.encode()),
            }.values()
        )


def _segments(segment: Row, model: str, start: int, numbers: range) -> Iterator[Row]:
    generation, first, until, changes = segment
    for number in numbers:
        yield (
            start + number,
            generation,
            first,
            until,
            changes.replace(model.encode(), name_of(number).encode()),
        )


def _copy_in(
    connection: psycopg.Connection[Row],
    table: str,
    columns: list[str],
    types: list[str],
    rows: Iterator[Row],
) -> None:
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(table), _names(columns)
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def _names(columns: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
