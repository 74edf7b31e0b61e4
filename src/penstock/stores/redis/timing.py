"""The periods of a store on Redis. Who opens the store may pass others, as tests do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisTiming:
    connect_seconds: float = 5.0
    """How long it may take to make a connection, with asking Sentinels where."""
    call_seconds: float = 10.0
    """A server that takes longer for the reply to a call counts as away."""
    block_margin_seconds: float = 5.0
    """How much longer than it was told to wait a server may take for a blocking read."""
    watch_seconds: float = 1.0
    """How often a connection looks whether a reply is late."""
    answer_seconds: float = 1.0
    """How long a Sentinel or one of several nodes may take, before the others' answers count."""
    pulse_seconds: float = 1.0
    """How often Redis is asked for its clock, its memory, its master and its nodes."""
    silent_seconds: float = 3.0
    """Nothing new is accepted while a question has been without an answer for so long."""
    wake_up_seconds: float = 4.0
    """How long an idle worker waits for a wake-up before it looks into all partitions.

    A lost wake-up costs at most about a second more.
    """
    feed_seconds: float = 5.0
    """How long one blocking read of the commit feed takes."""
    live_log_seconds: int = 60
    """How long the live log of a task is readable after it was written last."""
    dropped_line_seconds: float = 60.0
    """How often a line about unreadable entries is logged, at most, per kind of entry."""


DEFAULT_TIMING = RedisTiming()
