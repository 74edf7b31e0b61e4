"""Shares of the partitions: as even as it gets, by nothing but the names of the members.

Each orchestrator works out its own share from the same list, so nobody has to agree with anybody.
Only numbers are shared out, not partitions: one that joins or leaves moves as few of them as
possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def share(partitions: int, names: Sequence[str], name: str) -> int:
    """The number of partitions that `name` should have; the first names have the odd ones."""
    rank = names.index(name)
    return partitions // len(names) + (rank < partitions % len(names))


def by_preference(partitions: Iterable[int], names: Sequence[str], name: str) -> list[int]:
    """Partitions in the order in which `name` wants them.

    Two orchestrators that begin at once then ask for different ones. The last are given up first.
    """
    rank = names.index(name)
    return sorted(partitions, key=lambda partition: (partition % len(names) != rank, partition))
