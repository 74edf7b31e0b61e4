"""How much of a partition is moved between its hot and its cold store at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Portions:
    """The sizes of the portions in which executions are moved.

    Neither memory nor a transaction has to hold all of them.
    """

    bytes_max: int = 16 * 1024 * 1024
    """The size of a portion of executions that are read or written together."""
    read_executions_max: int = 64
    """Executions that are read from the hot store in one call."""
    outbox_entries_max: int = 500
    """Entries of the outbox that are archived before they are taken off it."""
    checkpoint_executions_max: int = 200
    rebuild_executions_first: int = 50
    """Executions in the first portion of a rebuild; how large they are isn't known yet."""
    rebuild_executions_max: int = 500
    large_bytes: int = 64 * 1024
    """A checkpoint of this size takes so long to read that others get a turn after it."""
