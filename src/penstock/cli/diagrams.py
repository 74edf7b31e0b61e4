"""Drawings of a plan: levels as text for people, Mermaid and Graphviz for programs.

Ids are any text, so both formats number the nodes and show the ids only inside quoted labels,
escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from penstock.cli.safe_text import counted, one_line
from penstock.definition.plan import Plan, PlanNode, RegionPlan

SMALL_NODES = 200
"""Up to so many nodes, a plan is small."""
SMALL_SHOWS = (12, 40)
LARGE_SHOWS = (4, 20)
"""How many nodes of a level, and how many levels, are drawn; the rest is counted."""
PARENTS_SHOWN = 4
HANDLERS_SHOWN = 3
MARGIN = " " * 9
NAME_WIDTH_MAX = 40

Numbered = tuple[int, list[int]]
"""A level's number, from 1 on, and its nodes."""


def levels(plan: Plan) -> list[list[int]]:
    """Nodes by level: each is one below its lowest parent, so that every arrow points down."""
    depth = [0] * len(plan.nodes)
    for number in plan.order:
        parents = plan.nodes[number].dependencies
        depth[number] = max((depth[parent] + 1 for parent in parents), default=0)

    nodes_by_level: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for number, level in enumerate(depth):
        nodes_by_level[level].append(number)
    return nodes_by_level


def text(plan: Plan) -> Iterator[str]:
    drawn = levels(plan)
    edges = sum(len(node.dependencies) for node in plan.nodes)
    counts = (
        counted(len(plan.nodes), "node"),
        counted(edges, "edge"),
        counted(len(drawn), "level"),
    )
    yield f"{one_line(plan.name)}: {', '.join(counts)}"
    yield ""

    is_small = len(plan.nodes) <= SMALL_NODES
    nodes_shown, levels_shown = SMALL_SHOWS if is_small else LARGE_SHOWS
    numbered = list(enumerate(drawn, start=1))
    upper, middle, lower = _split(numbered, levels_shown)
    heads: list[PlanNode] = []
    for _, level in upper + lower:
        heads += [plan.nodes[number] for number in level[:nodes_shown]]
    name_width = max(len(_name(node)) for node in heads)
    handler_width = max(len(_handler(node)) for node in heads)

    for index, level in upper + lower:
        if middle and index == lower[0][0]:
            yield f"{MARGIN}⋮"
            left_out = sum(len(level) for _, level in middle)
            yield f"{MARGIN}{counted(len(middle), 'level')} with {counted(left_out, 'node')}"
            yield f"{MARGIN}⋮"
        elif index > 1:
            yield f"{MARGIN}↓"
        yield from _level_lines(plan, index, level, nodes_shown, (name_width, handler_width))


def _split(
    numbered: list[Numbered], limit: int
) -> tuple[list[Numbered], list[Numbered], list[Numbered]]:
    """The upper levels to draw, the middle ones to count, and the lower ones to draw."""
    if len(numbered) <= limit:
        return numbered, [], []
    half = limit // 2
    return numbered[:half], numbered[half:-half], numbered[-half:]


def _level_lines(
    plan: Plan, index: int, level: Sequence[int], limit: int, widths: tuple[int, int]
) -> Iterator[str]:
    drawn = level if len(level) <= limit else level[: limit - 1]
    lines = [_node_line(plan, plan.nodes[number], widths) for number in drawn]
    if len(drawn) < len(level):
        handlers = Counter(plan.nodes[number].handler for number in level[len(drawn) :])
        most_common = handlers.most_common(HANDLERS_SHOWN)
        kinds = ", ".join(f"{count:,} × {one_line(name)}" for name, count in most_common)
        ellipsis = " …" if len(handlers) > HANDLERS_SHOWN else ""
        lines.append(f"… and {len(level) - len(drawn):,} more: {kinds}{ellipsis}")

    for number, line in enumerate(lines):
        label = f"{index:,}" if number == 0 else ""
        yield f"{label:>6} {_bracket(number, len(lines))} {line}"


def _node_line(plan: Plan, node: PlanNode, widths: tuple[int, int]) -> str:
    name_width, handler_width = widths
    name = _name(node).ljust(name_width)
    handler = _handler(node).ljust(handler_width)
    return f"{name}  {handler}  {_waits_for(plan, node)}".rstrip()


def _bracket(number: int, count: int) -> str:
    if count == 1:
        return " "
    if number == 0:
        return "┌"
    return "└" if number == count - 1 else "│"


def _handler(node: PlanNode) -> str:
    return one_line(node.handler, NAME_WIDTH_MAX)


def _name(node: PlanNode) -> str:
    return one_line(node.node_id, NAME_WIDTH_MAX)


def _waits_for(plan: Plan, node: PlanNode) -> str:
    parents = [_name(plan.nodes[parent]) for parent in node.dependencies[:PARENTS_SHOWN]]
    if len(node.dependencies) > PARENTS_SHOWN:
        parents.append(f"{len(node.dependencies) - PARENTS_SHOWN:,} more")
    waits = f"← {', '.join(parents)}" if parents else ""

    notes: list[str] = []
    if node.condition:
        notes.append(f"if {one_line(node.condition.source, 60)}")
    if node.rule != "all_success":
        notes.append(node.rule)
    if node.optional:
        notes.append("optional")
    if node.region is not None:
        notes.append(_region_note(node.region))
    return f"{waits}  ({'; '.join(notes)})" if notes else waits


def _region_note(region: RegionPlan) -> str:
    """`for each of {{ list.items }}: fetch, parse`."""
    body = ", ".join(one_line(node.node_id, 40) for node in region.body.nodes[:PARENTS_SHOWN])
    if len(region.body.nodes) > PARENTS_SHOWN:
        body += ", …"
    if region.each is not None:
        source = region.each.source
        items = one_line(source, 60) if isinstance(source, str) else f"{len(source):,} items"
        head = f"for each of {items}"
    else:
        head = f"until {one_line(region.until.source, 60)}" if region.until else "in rounds"
    return head if region.is_single else f"{head}: {body}"


def mermaid(plan: Plan) -> Iterator[str]:
    yield "flowchart TD"
    for number, node in enumerate(plan.nodes):
        opening, closing = _mermaid_shape(node)
        yield f'    n{number}{opening}"{_mermaid_label(node)}"{closing}'
    for number, node in enumerate(plan.nodes):
        arrow = "-.->" if node.condition else "-->"
        for parent in node.dependencies:
            yield f"    n{parent} {arrow} n{number}"


def _mermaid_shape(node: PlanNode) -> tuple[str, str]:
    if node.handler in ("input", "output"):
        return "([", "])"
    return ("{", "}") if node.handler == "decision" else ("[", "]")


def _mermaid_label(node: PlanNode) -> str:
    lines = [node.node_id, node.handler]
    if node.condition:
        lines.append(f"if {one_line(node.condition.source, 60)}")
    if node.region is not None:
        lines.append(_region_note(node.region))
    return "<br>".join(_mermaid_text(one_line(line, 256)) for line in lines)


def _mermaid_text(plain: str) -> str:
    """Text for a Mermaid label: quotes, brackets, HTML and Markdown as character codes."""
    return re.sub(r"[^\w .,/-]", lambda match: f"#{ord(match[0])};", plain)


def dot(plan: Plan) -> Iterator[str]:
    yield f'digraph "{_dot_text(plan.name)}" {{'
    yield '    node [shape=box, style=rounded, fontname="sans-serif"];'
    for number, node in enumerate(plan.nodes):
        label = f"{_dot_text(node.node_id)}\\n{_dot_text(node.handler)}"
        if node.condition:
            label += f"\\nif {_dot_text(one_line(node.condition.source, 60))}"
        if node.region is not None:
            label += f"\\n{_dot_text(_region_note(node.region))}"
        shape = ", shape=diamond" if node.handler == "decision" else ""
        yield f'    n{number} [label="{label}"{shape}];'
    for number, node in enumerate(plan.nodes):
        style = " [style=dashed]" if node.condition else ""
        for parent in node.dependencies:
            yield f"    n{parent} -> n{number}{style};"
    yield "}"


def _dot_text(plain: str) -> str:
    # Graphviz decodes HTML entities in labels, so ampersands are escaped as well.
    escaped = one_line(plain, 256).replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("&", "&amp;")


FORMATS: dict[str, Callable[[Plan], Iterator[str]]] = {"text": text, "mermaid": mermaid, "dot": dot}
