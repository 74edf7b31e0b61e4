"""Failed logins: requests with an invalid key, in the audit log and in the service's log.

There is one line for the first failed login of an address, and one a minute later with the number
of those that came after it. So the lines are few, however many clients try, and however often.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable

from penstock.api.audit_log import OBJECT_LENGTH, AuditLog
from penstock.stores.records import AuditLine

log = logging.getLogger("penstock.api")

ACTION = "failed_login"
UNAUTHORIZED = 401
WINDOW_SECONDS = 60.0
ADDRESSES_MAX = 100
OTHERS = "others"
"""Replaces the address, when there are more than `ADDRESSES_MAX` in a minute."""
_KEY_ID = re.compile(r"pk_([0-9a-f]{12})_", re.ASCII)


class FailedLogins:
    """Writes failed logins to the audit log, a line for each address and window."""

    def __init__(
        self,
        audit_log: AuditLog,
        *,
        window_seconds: float = WINDOW_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._audit_log = audit_log
        self._window_seconds = window_seconds
        self._clock = clock
        self._counts: dict[str, int] = {}
        """Failed logins by address, since the address's line was written."""
        self._writing: set[asyncio.Task[None]] = set()

    def note(self, address: str, target: str, sent: str) -> None:
        """Record a failed login.

        `sent` is what was sent as a key; only its id is recorded, which is no secret.
        """
        if address not in self._counts and len(self._counts) >= ADDRESSES_MAX:
            address = OTHERS
        if address in self._counts:
            self._counts[address] += 1
            return

        self._counts[address] = 0
        detail: dict[str, object] = {"count": 1}
        match = _KEY_ID.search(sent)
        if match:
            detail["sent_key_id"] = match[1]
        self._write(address, target, detail)

        loop = asyncio.get_running_loop()
        loop.call_later(self._window_seconds, self._end_window, address, target)

    def _end_window(self, address: str, target: str) -> None:
        count = self._counts.pop(address, 0)
        if count:
            self._write(address, target, {"count": count, "seconds": self._window_seconds})

    def _write(self, address: str, target: str, detail: dict[str, object]) -> None:
        log.warning("failed login from %s: %s", address or "an unknown address", detail)
        line = AuditLine(
            self._clock(), "", "", ACTION, target[:OBJECT_LENGTH], address, UNAUTHORIZED, detail
        )
        task = asyncio.create_task(self._audit_log.write(line))  # the answer needn't wait for it
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
