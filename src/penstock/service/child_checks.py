"""What of a document about its children can be judged by what is stored.

A reference in `config.workflow` is known when the node starts, and judged then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from penstock.definition.model import CHILD_DEPTH, Definition, Node, every_node
from penstock.definition.plan import Plan, PlanNode
from penstock.definition.problems import Problem, quoted
from penstock.definition.schema import cheap_problems, lines_of
from penstock.errors import NotFound
from penstock.spelling import near_miss

Resolve = Callable[[str], Awaitable[Plan]]
"""Answers the plan of a reference. Raises `NotFound`."""
VISITS_MAX = 1000
"""How many workflows below one document are looked at."""


class _Visit(NamedTuple):
    plan: Plan
    names: tuple[str, ...]
    """Of the workflows from the document down to this one."""


async def child_problems(
    definition: Definition, resolve: Resolve, known_names: Callable[[], Awaitable[list[str]]]
) -> list[Problem]:
    """Everything that is wrong with the children of a document."""
    problems: list[Problem] = []
    for node in every_node(definition.nodes):
        child = node.child
        if child is None or child.reference is None:
            continue
        path = f"{node.path}.config.workflow"
        if child.reference == definition.name and child.max_depth is not None:
            continue  # it may not be stored yet
        try:
            plan = await resolve(child.reference)
        except NotFound as error:
            if child.reference == definition.name:
                names = (definition.name, definition.name)
                problems.append(_cycle(names, path, node.id))
                continue
            meant = near_miss(child.reference, await known_names(), {})
            hint = f"; did you mean {meant!r}?" if meant else "; submit it first"
            problems.append(Problem("unknown_workflow", path, f"{error}{hint}", node.id))
            continue
        problems += _input_problems(node, plan)
        if child.max_depth is None:
            below = await _problem_below(definition.name, plan, resolve, path, node.id)
            problems += [] if below is None else [below]
    return problems


def _input_problems(node: Node, plan: Plan) -> list[Problem]:
    """What of a literal input doesn't fit the child; a large one is judged when it starts."""
    given = node.config.get("input")
    if plan.input_schema is None or "{{" in str(given) or not isinstance(given, (dict, type(None))):
        return []
    found = cheap_problems(plan.input_schema, {**plan.input, **(given or {})})
    if not found:
        return []
    message = f"it doesn't fit the input_schema of {plan.name}: {'; '.join(lines_of(found))}"
    return [Problem("bad_child_input", f"{node.path}.config.input", message, node.id)]


async def _problem_below(
    name: str, plan: Plan, resolve: Resolve, path: str, node_id: str
) -> Problem | None:
    """A circle of names, or too many levels, below a node of a document."""
    visits = [_Visit(plan, (name, plan.name))]
    seen = {(plan.name, 1)}
    if plan.name == name:
        return _cycle((name, name), path, node_id)
    for visit in visits:
        for below in visit.plan.handler_nodes():
            reference = _unbounded(below)
            if reference is None or len(visits) >= VISITS_MAX:
                continue
            try:
                child = await resolve(reference)
            except NotFound:
                continue  # that document was refused for it, or the workflow was deleted
            names = (*visit.names, child.name)
            if child.name == name:
                return _cycle(names, path, node_id)
            if len(names) - 1 > CHILD_DEPTH:
                message = (
                    f"it goes {len(names) - 1} levels down, and the limit is {CHILD_DEPTH}:"
                    f' {_shown(names)}; "max_depth" of these nodes changes that'
                )
                return Problem("too_deep", path, message, node_id)
            if (child.name, len(names)) not in seen:
                seen.add((child.name, len(names)))
                visits.append(_Visit(child, names))
    return None


def _unbounded(node: PlanNode) -> str | None:
    """The workflow that a node runs, unless it says how deep that may go."""
    if node.child is None or node.child.max_depth is not None:
        return None
    return node.child.reference


def _cycle(names: tuple[str, ...], path: str, node_id: str) -> Problem:
    message = (
        f"workflows run each other in a circle: {_shown(names)}; if that ends by a condition,"
        ' say with "max_depth" how deep it may go'
    )
    return Problem("workflow_cycle", path, message, node_id)


def _shown(names: tuple[str, ...]) -> str:
    return " → ".join(quoted(name) for name in names)
