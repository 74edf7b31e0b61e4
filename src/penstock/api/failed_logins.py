"""A trace of failed logins: keys that were sent and weren't good, in the audit log and in the service's log.

One line for the first of an address, and one a minute later with the number of those that came after it. However many
try, and however often, the lines are few.
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
"""What stands in place of an address, when there are more in a minute than are told apart."""
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
        self._audit_log, self._window_seconds, self._clock = audit_log, window_seconds, clock
        self._counts: dict[str, int] = {}
        """Failed logins by address: how many since its line was written."""
        self._writing: set[asyncio.Task[None]] = set()

    def note(self, address: str, target: str, sent: str) -> None:
        """Note a failed login.

        `sent` is what was sent as a key; of it only the id is kept, which is no secret.
        """
        if address not in self._counts and len(self._counts) >= ADDRESSES_MAX:
            address = OTHERS
        if address in self._counts:
            self._counts[address] += 1
            return
        self._counts[address] = 0
        match = _KEY_ID.search(sent)
        self._write(address, target, {"count": 1, **({"sent_key_id": match[1]} if match else {})})
        asyncio.get_running_loop().call_later(
            self._window_seconds, self._end_window, address, target
        )

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
