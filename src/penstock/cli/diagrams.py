"""A plan as a drawing: levels for people, Mermaid and Graphviz for programs.

Ids are any text, so both formats number the nodes and show the ids only inside quoted labels,
escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from penstock.cli.safe_text import counted, one_line
from penstock.definition.plan import Plan, PlanNode

SMALL_NODES = 200
SMALL_SHOWS, LARGE_SHOWS = (12, 40), (4, 20)
"""How many nodes of a level, and how many levels, are drawn; the rest is counted."""
PARENTS_SHOWN = 4
MARGIN = " " * 9
NAME_WIDTH_MAX = 40

Numbered = tuple[int, list[int]]
"""A level's number, from 1 on, and its nodes."""


def levels(plan: Plan) -> list[list[int]]:
    """Each node one below its lowest parent, so that every arrow points down."""
    depth = [0] * len(plan.nodes)
    for number in plan.order:
        depth[number] = max(
            (depth[parent] + 1 for parent in plan.nodes[number].dependencies), default=0
        )
    found: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for number, level in enumerate(depth):
        found[level].append(number)
    return found


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
    nodes_shown, levels_shown = SMALL_SHOWS if len(plan.nodes) <= SMALL_NODES else LARGE_SHOWS
    numbered = list(enumerate(drawn, start=1))
    upper, middle, lower = _split(numbered, levels_shown)
    heads = [plan.nodes[number] for _, level in upper + lower for number in level[:nodes_shown]]
    widths = max(len(_name(node)) for node in heads), max(len(_handler(node)) for node in heads)
    for index, level in upper + lower:
        if middle and index == lower[0][0]:
            yield f"{MARGIN}⋮"
            left_out = sum(len(level) for _, level in middle)
            yield f"{MARGIN}{counted(len(middle), 'level')} with {counted(left_out, 'node')}"
            yield f"{MARGIN}⋮"
        elif index > 1:
            yield f"{MARGIN}↓"
        yield from _level(plan, index, level, nodes_shown, widths)


def _split(
    numbered: list[Numbered], limit: int
) -> tuple[list[Numbered], list[Numbered], list[Numbered]]:
    """The levels to draw, those to count, those to draw again."""
    if len(numbered) <= limit:
        return numbered, [], []
    half = limit // 2
    return numbered[:half], numbered[half:-half], numbered[-half:]


def _level(
    plan: Plan, index: int, level: Sequence[int], limit: int, widths: tuple[int, int]
) -> Iterator[str]:
    shown = level if len(level) <= limit else level[: limit - 1]
    lines = [_line(plan, plan.nodes[number], widths) for number in shown]
    if len(shown) < len(level):
        handlers = Counter(plan.nodes[number].handler for number in level[len(shown) :])
        kinds = ", ".join(
            f"{count:,} × {one_line(name)}" for name, count in handlers.most_common(3)
        )
        lines.append(
            f"… and {len(level) - len(shown):,} more: {kinds}{' …' if len(handlers) > 3 else ''}"  # noqa: PLR2004
        )
    for number, line in enumerate(lines):
        yield f"{f'{index:,}' if number == 0 else '':>6} {_bracket(number, len(lines))} {line}"


def _line(plan: Plan, node: PlanNode, widths: tuple[int, int]) -> str:
    return f"{_name(node):<{widths[0]}}  {_handler(node):<{widths[1]}}  {_waits_for(plan, node)}".rstrip()


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
    notes = [f"if {one_line(node.condition.source, 60)}"] if node.condition else []
    notes += [node.rule] if node.rule != "all_success" else []
    notes += ["optional"] if node.optional else []
    return f"{waits}  ({'; '.join(notes)})" if notes else waits


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
    lines = [
        node.node_id,
        node.handler,
        *([f"if {one_line(node.condition.source, 60)}"] if node.condition else []),
    ]
    return "<br>".join(_mermaid_text(one_line(line, 256)) for line in lines)


def _mermaid_text(plain: str) -> str:
    """Everything but letters, digits and harmless signs as a character code: quotes, brackets, HTML, Markdown."""
    return re.sub(r"[^\w .,/-]", lambda match: f"#{ord(match[0])};", plain)


def dot(plan: Plan) -> Iterator[str]:
    yield f'digraph "{_dot_text(plan.name)}" {{'
    yield '    node [shape=box, style=rounded, fontname="sans-serif"];'
    for number, node in enumerate(plan.nodes):
        condition = (
            f"\\nif {_dot_text(one_line(node.condition.source, 60))}" if node.condition else ""
        )
        shape = ", shape=diamond" if node.handler == "decision" else ""
        yield f'    n{number} [label="{_dot_text(node.node_id)}\\n{_dot_text(node.handler)}{condition}"{shape}];'
    for number, node in enumerate(plan.nodes):
        style = " [style=dashed]" if node.condition else ""
        for parent in node.dependencies:
            yield f"    n{parent} -> n{number}{style};"
    yield "}"


def _dot_text(plain: str) -> str:
    # Graphviz decodes HTML entities in labels, so the ampersand is one too.
    escaped = one_line(plain, 256).replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("&", "&amp;")


FORMATS: dict[str, Callable[[Plan], Iterator[str]]] = {"text": text, "mermaid": mermaid, "dot": dot}
