"""Outages of a store: what a client is told, and what is logged.

The text of a `StoreUnavailable` names servers, ports, databases and accounts. Operators need them
in the log, and clients must not see them.
"""

from __future__ import annotations

import logging
import time

from penstock.errors import StoreFileLost

log = logging.getLogger("penstock.service")

AWAY = (
    "a store of this service is away: it doesn't answer, or takes no writes now;"
    " the service's log has the reason"
)
FILE_LOST = (
    "a file of the store was deleted, moved or replaced while it was in use, so nothing is"
    " accepted; the service's log says which file, and what to do"
)
AGAIN_SECONDS = 30.0
TEXTS_MAX = 100

_logged: dict[str, float] = {}
"""When each text was logged last: thousands of requests may fail with the same one."""


def shown_outage(error: Exception) -> str:
    """The text about an outage for a client. The error itself is logged, once in a while."""
    text = f"{type(error).__name__}: {error}"
    now = time.monotonic()
    if now - _logged.get(text, -AGAIN_SECONDS) >= AGAIN_SECONDS:
        if len(_logged) >= TEXTS_MAX:
            _logged.clear()
        _logged[text] = now
        log.warning("a store is away, and requests are refused: %s", text)
    return FILE_LOST if isinstance(error, StoreFileLost) else AWAY
