"""The nodes together: order, cycles, ancestors.

Everything is iterative, and linear in nodes + edges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

Edges = Sequence[Sequence[int]]


def children_of(dependencies: Edges) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in dependencies]
    for node, parents in enumerate(dependencies):
        for parent in parents:
            children[parent].append(node)
    return children


def topological_order(dependencies: Edges, children: Edges) -> list[int]:
    """Kahn's algorithm. Shorter than the number of nodes if there is a cycle."""
    waiting = [len(parents) for parents in dependencies]
    ready = deque(node for node, count in enumerate(waiting) if not count)
    order: list[int] = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return order


def find_cycles(dependencies: Edges, order: Sequence[int], *, limit: int = 10) -> list[list[int]]:
    """Disjoint cycles among the nodes that Kahn couldn't order.

    Each is a path along the edges, parent first. Every node that is left has a parent that is left,
    so going back from one must end in a cycle. Taking that out and ordering again shows the next,
    also one that the first stood in the way of.
    """
    left = set(range(len(dependencies))).difference(order)
    children = children_of(dependencies) if left else []
    cycles: list[list[int]] = []
    while left and len(cycles) < limit:
        cycle = _walk_back(min(left), dependencies, left)
        cycles.append(cycle)
        left.difference_update(cycle)
        _drop_ordered(left, dependencies, children)
    return cycles


def _walk_back(start: int, dependencies: Edges, left: set[int]) -> list[int]:
    steps: dict[int, int] = {}
    node = start
    while node not in steps:
        steps[node] = len(steps)
        node = next(parent for parent in dependencies[node] if parent in left)
    cycle = list(steps)[steps[node] :]
    cycle.reverse()
    lowest = cycle.index(min(cycle))
    return cycle[lowest:] + cycle[:lowest]


def _drop_ordered(left: set[int], dependencies: Edges, children: Edges) -> None:
    waiting = {node: sum(parent in left for parent in dependencies[node]) for node in left}
    ready = [node for node, count in waiting.items() if not count]
    while ready:
        node = ready.pop()
        left.remove(node)
        for child in children[node]:
            if child in left:
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)


def missing_ancestors(
    queries: Iterable[tuple[int, int]], dependencies: Edges, order: Sequence[int]
) -> list[tuple[int, int]]:
    """Of the pairs (node, other): those whose `other` is not an ancestor of `node`.

    Three sieves, so that real documents cost next to nothing: a direct dependency; an ancestor in a
    spanning forest (two comparisons); what is left is answered exactly by bit sets over the wanted
    ancestors, 1,024 at a time.
    """
    queries = list(queries)
    if not queries:
        return []

    parents = {node: set(dependencies[node]) for node, _ in queries}
    enter, leave = _intervals(dependencies, order)
    hard: list[tuple[int, int]] = []
    for node, other in queries:
        is_above = enter[other] < enter[node] <= leave[other]
        if other not in parents[node] and not is_above:
            hard.append((node, other))

    return missing_above(hard, dependencies, dependencies, order)


def missing_above(
    queries: Sequence[tuple[int, int]], parents: Edges, dependencies: Edges, order: Sequence[int]
) -> list[tuple[int, int]]:
    """Of the pairs (node, other): those whose `other` is neither in `parents` of `node` nor above.

    What is above a parent follows from `dependencies`, which may have more edges than `parents`.
    """
    wanted = sorted({other for _, other in queries})
    missing: list[tuple[int, int]] = []
    for first in range(0, len(wanted), 1024):
        bits = {other: 1 << i for i, other in enumerate(wanted[first : first + 1024])}
        masks = _ancestor_masks(bits, dependencies, order)
        here = [(node, other) for node, other in queries if other in bits]
        above = {node: _mask_above(parents[node], masks, bits) for node, _ in here}
        missing += [(node, other) for node, other in here if not above[node] & bits[other]]
    return missing


def with_edges(dependencies: Edges, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The dependencies and, for each pair (node, other), `other` as one of the node's."""
    edges = [list(parents) for parents in dependencies]
    for node, other in pairs:
        edges[node].append(other)
    return edges


def _intervals(dependencies: Edges, order: Sequence[int]) -> tuple[list[int], list[int]]:
    """Pre-order numbers of a spanning forest in which each node hangs below its first parent."""
    size = [1] * len(dependencies)
    for node in reversed(order):
        if dependencies[node]:
            size[dependencies[node][0]] += size[node]

    enter = [0] * len(size)
    leave = [0] * len(size)
    next_free = [0] * len(size)
    top = 0
    for node in order:
        if dependencies[node]:
            parent = dependencies[node][0]
            enter[node] = next_free[parent]
            next_free[parent] += size[node]
        else:
            enter[node] = top
            top += size[node]
        next_free[node] = enter[node] + 1
        leave[node] = enter[node] + size[node] - 1
    return enter, leave


def _ancestor_masks(bits: dict[int, int], dependencies: Edges, order: Sequence[int]) -> list[int]:
    masks = [0] * len(dependencies)
    for node in order:
        masks[node] = _mask_above(dependencies[node], masks, bits)
    return masks


def _mask_above(parents: Sequence[int], masks: Sequence[int], bits: dict[int, int]) -> int:
    mask = 0
    for parent in parents:
        mask |= masks[parent] | bits.get(parent, 0)
    return mask
