"""Entries in Redis that can't be read: they are dropped, counted, and logged once a minute.

Whoever can write to Redis can write a million of them; not each must cost a line in the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger("penstock.stores")

REASON_CHARACTERS = 200


class DroppedEntries:
    """Counts dropped entries, and now and then logs a line with their number, for each kind."""

    def __init__(self, line_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._line_seconds = line_seconds
        self._clock = clock
        self._counts: dict[str, int] = {}
        self._next_line: dict[str, float] = {}

    def add(self, what: str, error: Exception) -> None:
        self._counts[what] = count = self._counts.get(what, 0) + 1
        now = self._clock()
        if now < self._next_line.get(what, now):
            return
        self._next_line[what] = now + self._line_seconds
        self._counts[what] = 0
        reason = str(error)[:REASON_CHARACTERS]
        log.error(
            "%s can't be read and is dropped (%d since the last such line): %s",
            what,
            count,
            reason,
        )
