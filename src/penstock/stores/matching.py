"""What the filters of a search mean, for every store alike."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase
from typing import Any

import msgspec

from penstock.engine.commands import DeadLetter
from penstock.stores.records import (
    AuditLine,
    AuditSearch,
    DeadLetterRow,
    DeadLetterSearch,
    ExecutionRow,
    Search,
)

_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def label_text(value: Any) -> str:
    """A label as it is compared: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def lowered(text: str) -> str:
    """Case is ignored for the letters A-Z only: that is what SQLite can do too."""
    return text.translate(_ASCII_LOWER)


def last_category(dead_letter: DeadLetter) -> str:
    """The category of the last attempt's error; empty if there was no attempt."""
    attempts = dead_letter.attempts
    return attempts[-1].error.category if attempts else ""


def finds(search: Search, row: ExecutionRow) -> bool:
    return (
        (not search.states or row.state in search.states)
        and search.workflow in (None, row.workflow)
        and search.version in (None, row.version)
        and search.retry_of in (None, row.retry_of)
        and (search.before is None or row.n < search.before)
        and _in_time(search, row.created_at)
        and all(
            key in row.labels and label_text(row.labels[key]) == value
            for key, value in search.labels.items()
        )
        and (search.text is None or _has_text(row, lowered(search.text)))
    )


def _has_text(row: ExecutionRow, text: str) -> bool:
    return text in lowered(row.execution_id) or text in lowered(row.workflow)


def _in_time(search: Search | AuditSearch, at: float) -> bool:
    return (search.since is None or at >= search.since) and (
        search.until is None or at < search.until
    )


def finds_dead_letter(search: DeadLetterSearch, row: DeadLetterRow) -> bool:
    return (
        (search.closed or row.closed is None)
        and search.workflow in (None, row.workflow)
        and search.handler in (None, row.dead_letter.handler)
        and search.category in (None, last_category(row.dead_letter))
        and search.execution_id in (None, row.dead_letter.execution_id)
        and (search.before is None or row.id < search.before)
    )


def finds_line(search: AuditSearch, line: AuditLine) -> bool:
    return (
        search.key_id in (None, line.key_id)
        and search.action in (None, line.action)
        and search.object in (None, line.object)
        and (search.before is None or line.id < search.before)
        and _in_time(search, line.at)
    )
