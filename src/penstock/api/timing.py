"""The times of the API, which it passes down to its routes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiTiming:
    """How long an answer waits, and what a stream of events does now and then."""

    check_seconds: float = 2.0
    """How long a health check waits for the part that it checks."""
    audit_wait_seconds: float = 2.0
    """How long an answer waits for a store that doesn't respond to write its line of the audit log.

    The line is written when it does.
    """

    heartbeat_seconds: float = 15.0
    """A stream of events without anything to send sends a comment after so long."""
    stream_seconds_max: float = 3600.0
    """A stream ends after so long; its client reconnects."""
    recheck_seconds: float = 2.0
    """How often a stream checks that the caller may still read."""
    last_word_seconds: float = 1.0
    """How long ending a stream may take, if its client doesn't read."""

    @property
    def idle_seconds(self) -> float:
        """How long a stream waits for something to send."""
        return min(self.heartbeat_seconds, self.stream_seconds_max)
