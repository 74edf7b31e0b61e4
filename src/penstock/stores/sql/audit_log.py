"""Audit lines as rows, and the conditions of a search for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from penstock.stores.records import AuditLine, AuditSearch
from penstock.stores.sql.conditions import Condition, clamped, given

COLUMNS = "at, key_id, key_name, action, object, address, status, detail"


def conditions(search: AuditSearch, escape: Callable[[str], str]) -> Iterable[Condition]:
    """`escape` makes of a text what the database holds of it."""
    return given(
        {
            "key_id = ?": search.key_id,
            "action = ?": search.action,
            "object = ?": None if search.object is None else escape(search.object),
            "at >= ?": search.since,
            "at < ?": search.until,
            "id < ?": clamped(search.before),
        }
    )


def encode_line(line: AuditLine, escape: Callable[[str], str]) -> tuple[Any, ...]:
    """The values of `COLUMNS`; the detail is JSON."""
    return (
        line.at,
        line.key_id,
        escape(line.key_name),
        line.action,
        escape(line.object),
        escape(line.address),
        line.status,
        msgspec.json.encode(line.detail) if line.detail else None,
    )


def decode_line(row: tuple[Any, ...], unescape: Callable[[str], str]) -> AuditLine:
    """The line of a row that has `COLUMNS` and the id."""
    at, key_id, key_name, action, subject, address, status, detail, number = row
    line = AuditLine(
        at, key_id, unescape(key_name), action, unescape(subject), unescape(address), status
    )
    line.id = number
    if detail is not None:
        line.detail = msgspec.json.decode(detail)
    return line
