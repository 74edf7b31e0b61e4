"""Addresses of nodes in an execution: `fetch`, `each[3].parse`, `shout[3]`, `each[3]`.

The last one of a map with a body is the item itself, which its map's node stands for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.definition.plan import Body, Plan, PlanNode, RegionPlan

INDEX = re.compile(r"\[(\d+)\]")


class Position(NamedTuple):
    """What an address means in a plan."""

    node: PlanNode
    body: Plan | Body | None
    """Where the node's parents are; None for an item itself."""


def position_of(plan: Plan, address: str) -> Position | None:
    """What an address means; None if it means nothing."""
    around: Plan | Body = plan
    rest = address
    while rest not in around.numbers:
        node_and_tail = _split(around, rest)
        if node_and_tail is None:
            return None
        node, tail = node_and_tail
        region = node.region
        if region is None:
            return None
        if not tail and region.is_single:
            return Position(region.body.nodes[0], region.body)
        if not tail:
            return Position(node, None)
        if region.is_single:
            return None
        around = region.body
        rest = tail
    return Position(around.nodes[around.numbers[rest]], around)


def _split(around: Plan | Body, rest: str) -> tuple[PlanNode, str] | None:
    """The map or loop that an address begins with, and what follows the index of its item."""
    for bracket in INDEX.finditer(rest):
        number = around.numbers.get(rest[: bracket.start()])
        if number is None:
            continue
        tail = rest[bracket.end() :]
        if not tail or tail.startswith("."):
            return around.nodes[number], tail[1:]
    return None


def node_at(plan: Plan, address: str) -> PlanNode | None:
    """The compiled node that an address means; None if it means none."""
    number = plan.numbers.get(address)
    if number is not None:
        return plan.nodes[number]
    position = position_of(plan, address)
    return None if position is None else position.node


def body_at(plan: Plan, address: str) -> Plan | Body | None:
    """Where the parents of an address's node are; None for an item itself."""
    position = position_of(plan, address)
    return None if position is None else position.body


def outermost_item(plan: Plan, address: str) -> tuple[str, int] | None:
    """The map or loop of the plan that an address is inside of, and the index of the item."""
    for bracket in INDEX.finditer(address):
        node_id = address[: bracket.start()]
        if node_id in plan.numbers:
            return node_id, int(bracket[1])
    return None


class Step(NamedTuple):
    """A map or a loop on the way to an address, and the index of the item."""

    address: str
    region: RegionPlan
    item_index: int


def steps_to(plan: Plan, address: str) -> list[Step]:
    """The maps and loops that an address is inside of, the outermost first."""
    steps: list[Step] = []
    around: Plan | Body = plan
    rest = address
    while rest and rest not in around.numbers:
        node_and_tail = _split(around, rest)
        if node_and_tail is None or node_and_tail[0].region is None:
            return []
        node, tail = node_and_tail
        before = address[: len(address) - len(rest)]
        index = INDEX.match(rest, len(node.node_id))
        if index is None or node.region is None:
            return []
        steps.append(Step(f"{before}{node.node_id}", node.region, int(index[1])))
        around = node.region.body
        rest = tail
    return steps
