"""How the stores of one address hang together. What differs between them is asked here."""

from __future__ import annotations

from typing import NamedTuple

from penstock.stores.base import Stores


class Topology(NamedTuple):
    is_tiered: bool
    """Hot and cold are two stores: executions move from one to the other, and either may be away.
    """
    is_shared: bool
    """Several processes work on the stores, so a process sees commits of others in the feed."""
    tasks_are_durable: bool
    """Queued tasks outlive the process; else a new owner hands them out again."""


def topology_of(stores: Stores) -> Topology:
    return Topology(
        is_tiered=stores.tiering is not None,
        is_shared=stores.commit_feed is not None,
        tasks_are_durable=stores.hot.tasks_are_durable,
    )
