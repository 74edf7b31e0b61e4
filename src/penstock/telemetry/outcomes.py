"""The log of outcomes: a line for each attempt that failed, and for each execution that ended.

What somebody who watches a console wants to see. An attempt's line has the traceback if no other
attempt follows. Beyond `LINES_MAX` within a second, the rest is counted in one line: thousands of
executions may end in a second, and a line costs more than their decisions.

    ship failed, attempt 1, again in 1.2 s: ConnectionError: no route
    ship failed after 3 attempts: ConnectionError: no route
    order@2 COMPLETED in 0.35 s
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("penstock.executions")

LINES_MAX = 20
"""Lines of a kind within a second."""
WINDOW_SECONDS = 1.0
MESSAGE_CHARACTERS_MAX = 300


class OutcomeLog:
    """Logs outcomes in the process that learns of them; to be called on its loop."""

    def __init__(self, lines_max: int = LINES_MAX) -> None:
        self._failed = _Burst("more attempts failed", lines_max)
        self._ended = _Burst("more executions ended", lines_max)

    def attempt_failed(  # noqa: PLR0913 -- the parts of its line
        self,
        marks: Mapping[str, Any],
        message: str,
        *,
        category: str,
        is_last: bool,
        retry_seconds: float | None = None,
        traceback: str | None = None,
    ) -> None:
        """An attempt has failed: an error if no other follows, otherwise a warning.

        `retry_seconds` is when the next one begins, where that is known.
        """
        level = logging.ERROR if is_last else logging.WARNING
        if not log.isEnabledFor(level) or not self._failed.has_room(category):
            return
        attempt = marks["attempt"]
        if not is_last:
            how = f", attempt {attempt}"
            if retry_seconds is not None:
                how += f", again in {_shown(retry_seconds)}"
        else:
            how = f" after {attempt} attempts" if attempt > 1 else ""
        extra = {**marks, "category": category}
        if is_last and traceback:
            extra["exception"] = traceback.rstrip("\n")
        log.log(level, "%s failed%s: %s", marks["node_id"], how, _line_of(message), extra=extra)

    def execution_ended(
        self, marks: Mapping[str, Any], state: str, seconds: float, failure: str = ""
    ) -> None:
        """An execution has ended. `failure` says what failed, if something did."""
        level = logging.WARNING if state == "FAILED" else logging.INFO
        if not log.isEnabledFor(level) or not self._ended.has_room(state):
            return
        cause = f": {_line_of(failure)}" if failure else ""
        extra = {**marks, "state": state}
        name = f"{marks['workflow']}@{marks['version']}"
        log.log(level, "%s %s in %s%s", name, state, _shown(seconds), cause, extra=extra)

    def close(self) -> None:
        """Log what was only counted so far."""
        self._failed.close()
        self._ended.close()


class _Burst:
    """Lets so many lines of a second through, and logs the number of the others at its end."""

    def __init__(self, what: str, lines_max: int) -> None:
        self._what = what
        self._lines_max = lines_max
        self._lines = 0
        self._others: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def has_room(self, kind: str) -> bool:
        """Whether a line may be logged; if not, it is counted under its kind."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(WINDOW_SECONDS, self._end_window)
        self._lines += 1
        if self._lines <= self._lines_max:
            return True
        self._others[kind] += 1
        return False

    def _end_window(self) -> None:
        self._timer = None
        self._lines = 0
        if self._others:
            parts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self._others.items()))
            log.info("%s %s: %s", f"{self._others.total():,}", self._what, parts)
            self._others.clear()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._end_window()


def _shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:,.0f} s"  # noqa: PLR2004


def _line_of(message: str) -> str:
    """The first line of a message, cut if it is long: the execution has all of it."""
    first, *more = message.strip().split("\n", 1)
    if len(first) > MESSAGE_CHARACTERS_MAX:
        return first[:MESSAGE_CHARACTERS_MAX] + " …"
    return f"{first} …" if more else first
