"""Executions as users name them: by their id, the beginning of one, or `@last`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import NotFound

if TYPE_CHECKING:
    from penstock.client import Client, Execution
    from penstock.views.executions import ListedExecution

LAST = "@last"
WHOLE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
PREFIX = re.compile(r"[0-9a-f-]{1,35}", re.IGNORECASE)
PREFIX_CHARACTERS_MIN = 4
CANDIDATES_SHOWN = 5
SCANNED_MAX = 5_000
"""Executions that are looked at: those whose id or workflow contains the text."""
TIME_DIGITS = 12
"""Hexadecimal digits of an id that say when it was made, in milliseconds."""
CLOCK_SECONDS = 300
"""How far the time in an id and the recorded time of creation may differ."""


class Executions(Protocol):
    """Where executions are searched: a client of a server, or a reader of a store."""

    def executions(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[dict[str, Any]]: ...


class Ambiguous(NotFound):
    """Several executions have ids that begin like this."""


async def resolve(executions: Executions, text: str) -> str:
    """The id of the execution that a text names.

    Raises `NotFound`, or `Ambiguous` with the candidates. A text that can't be the beginning of an
    id is given back as it is: the server knows whether it has such an execution.
    """
    if text == LAST:
        async for item in executions.executions(limit=1):
            return str(item["execution_id"])
        raise NotFound("there are no executions yet, so @last names none")
    if WHOLE_ID.fullmatch(text) or not PREFIX.fullmatch(text):
        return text
    if len(text) < PREFIX_CHARACTERS_MIN:
        raise NotFound(
            f"{text!r} is too short; write at least {PREFIX_CHARACTERS_MIN} characters of the id"
        )
    return await _by_prefix(executions, text.lower())


async def find_execution(client: Client, text: str) -> Execution:
    """The handle of the execution on a server that a text names."""
    return client.execution(await resolve(client, text))


async def _by_prefix(executions: Executions, prefix: str) -> str:
    from penstock.cli.remote import decode
    from penstock.views.executions import ListedExecution

    since, until = _created_between(prefix)
    candidates: list[ListedExecution] = []
    items = executions.executions(since=since, until=until, text=prefix, limit=SCANNED_MAX)
    async for item in items:
        if str(item["execution_id"]).startswith(prefix):
            candidates.append(decode(item, ListedExecution))
        if len(candidates) > CANDIDATES_SHOWN:
            break

    if not candidates:
        raise NotFound(f"there is no execution whose id begins with {prefix!r}")
    if len(candidates) > 1:
        raise Ambiguous(_listed(prefix, candidates))
    return candidates[0].execution_id


def _created_between(prefix: str) -> tuple[datetime, datetime]:
    """When the executions were created whose ids begin like this: an id begins with its time."""
    digits = prefix.replace("-", "")[:TIME_DIGITS]
    missing = TIME_DIGITS - len(digits)
    first_ms = int(digits + "0" * missing, 16)
    last_ms = int(digits + "f" * missing, 16)
    return _at(first_ms / 1000 - CLOCK_SECONDS), _at(last_ms / 1000 + CLOCK_SECONDS)


def _at(seconds: float) -> datetime:
    """A time that a server takes: in the years 1970 to 9998."""
    first = datetime(1970, 1, 1, tzinfo=UTC)
    last = datetime(9998, 1, 1, tzinfo=UTC)
    if seconds >= (last - first).total_seconds():
        return last
    return first + timedelta(seconds=max(seconds, 0.0))


def _listed(prefix: str, candidates: list[ListedExecution]) -> str:
    from penstock.cli.remote import short_time
    from penstock.cli.safe_text import one_line

    newest = candidates[:CANDIDATES_SHOWN]
    lines = [
        f"  {execution.execution_id}  {one_line(execution.workflow, 60)}@{execution.version}"
        f"  {execution.state}  {short_time(execution.created_at)}"
        for execution in newest
    ]
    if len(candidates) > len(newest):
        lines.append("  and more")
    return "\n".join([f"several executions have ids that begin with {prefix!r}:", *lines])
