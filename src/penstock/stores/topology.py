"""The topology of stores: how those of one address hang together, as each `Stores` states it."""

from __future__ import annotations

from typing import NamedTuple


class Topology(NamedTuple):
    is_tiered: bool
    """Hot and cold are two stores: executions move from one to the other, and either may be away.

    Then `Stores.tiering` isn't None.
    """
    is_shared: bool
    """Several processes work on the stores, so a process sees commits of others in the feed.

    Then `Stores.commit_feed` and `Stores.fleet` aren't None.
    """
    tasks_are_durable: bool
    """Queued tasks outlive the process; else a new owner hands them out again."""
