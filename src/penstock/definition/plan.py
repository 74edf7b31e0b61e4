"""A `Plan`: a version of a workflow, compiled so that each step of running it is a look-up.

Nodes know their children by number, so that one completion touches only those. The plan is never
changed while an execution runs; an execution that gains nodes keeps them beside its plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from penstock.definition import graph
from penstock.definition.condition import Condition, compile_condition
from penstock.definition.config import Config, compile_config, with_expression
from penstock.definition.expression import (
    EXPRESSION_HANDLERS,
    Expression,
    check_expression,
    compile_expression,
)
from penstock.definition.fields import SECONDS_MAX
from penstock.definition.handler_configs import ConfigRules, config_faults
from penstock.definition.model import (
    BUILT_IN_HANDLERS,
    DATA_HANDLERS,
    DEFAULT_TIMEOUT_SECONDS,
    FALLBACK_HANDLERS,
    OUTPUT_ALIASES,
    SLEEP_MARGIN_SECONDS,
    Definition,
    HandlerDefaults,
    Node,
    OnFailure,
    Retry,
    TriggerRule,
)
from penstock.definition.parse import Limits, check_values
from penstock.definition.problems import KEY_CHARACTERS_MAX, Problem, Problems, path_to, quoted
from penstock.definition.read import check_handlers, read
from penstock.definition.schema import compile_schema
from penstock.definition.template import Reference, TemplateError
from penstock.errors import InvalidWorkflow

NO_ALIASES: Mapping[str, str] = {}
CYCLE_NODES_MAX = 12
"""How many nodes of a cycle a message lists."""
EARLY_RULES: frozenset[TriggerRule] = frozenset({"one_success", "one_failed"})
"""Rules that start a node before all of its dependencies have ended.

A reference doesn't make a dependency there: it would be one more node that can start it.
"""


class PlanNode(msgspec.Struct, gc=False):
    node_id: str
    handler: str
    queue: str
    dependencies: tuple[int, ...]
    children: tuple[int, ...]
    rule: TriggerRule
    config: Config
    condition: Condition | None
    retry: Retry
    timeout_seconds: float
    queue_timeout_seconds: float | None
    optional: bool
    dead_letter: bool
    """Its failure is stored as a dead letter."""
    fails_with_dependency: bool
    is_data: bool
    fixed_config: bytes | None
    """The config as JSON when nothing in it has to be looked up."""
    needs: frozenset[str]
    """Nodes whose outputs starting this one takes, beside those of its parents."""
    uses_input: bool = False
    """Whether starting it takes the execution's input."""
    names_queue: bool = False
    """The document says which queue; else workers do, and may have said something else since this
    was compiled.
    """

    @property
    def aliases(self) -> Mapping[str, str]:
        return OUTPUT_ALIASES.get(self.handler, NO_ALIASES)


class Plan(msgspec.Struct):
    name: str
    nodes: list[PlanNode]
    numbers: dict[str, int]
    order: list[int]
    on_failure: OnFailure
    timeout_seconds: float | None
    input: dict[str, Any]
    input_schema: Any
    result_nodes: tuple[str, ...]
    """Whose outputs are the execution's output: the one `output` node, or the sinks."""
    single_result: bool
    dependency_counts: list[int]
    roots: tuple[int, ...]
    version: int = 0


class Compiled(msgspec.Struct):
    definition: Definition
    plan: Plan
    warnings: list[Problem]


def compile_document(  # noqa: PLR0913 -- the options of a submission
    document: Any,
    *,
    handlers: Mapping[str, HandlerDefaults] | None = None,
    allow_unknown_handlers: bool = False,
    strict: bool = False,
    limits: Limits | None = None,
    config_rules: ConfigRules | None = None,
    checked: bool = False,
    stored: bool = False,
) -> Compiled:
    """Read, check and compile.

    Raises `InvalidWorkflow` with every problem; `checked` says that `parse` made it.

    `stored`: it was accepted once, perhaps by an older version, and its executions must go on. What
    only a start looks at isn't looked at then.
    """
    limits = limits or Limits()
    if not checked:
        check_values(document, limits)
    problems = Problems(strict=strict)
    definition = read(document, problems, max_nodes=limits.max_nodes)
    if definition is None:
        raise InvalidWorkflow(problems.errors)

    defaults = {**dict.fromkeys(BUILT_IN_HANDLERS, HandlerDefaults()), **(handlers or {})}
    for node in definition.nodes:
        if node.handler not in defaults:
            node.handler = FALLBACK_HANDLERS.get(node.handler, node.handler)
    if not allow_unknown_handlers:
        check_handlers(definition.nodes, defaults, problems)
    if not stored:
        _check_schema(definition, problems)
        _check_configs(definition, problems, config_rules or ConfigRules())

    plan = _Compiler(definition, defaults, problems, stored=stored).compile()
    if problems.errors or plan is None:
        raise InvalidWorkflow(problems.errors)
    return Compiled(definition, plan, problems.warnings)


def _check_schema(definition: Definition, problems: Problems) -> None:
    if definition.input_schema is None:
        return
    try:
        compile_schema(definition.input_schema)
    except ValueError as error:
        problems.error("bad_schema", "input_schema", f'"input_schema" can\'t be used: {error}')


def _check_configs(definition: Definition, problems: Problems, rules: ConfigRules) -> None:
    report = problems.warn if rules.is_lenient else problems.error
    for node in definition.nodes:
        for fault in config_faults(node.handler, node.config, rules):
            hint = problems.did_you_mean(fault.unknown, fault.names) if fault.unknown else ""
            path = path_to(f"{node.path}.config", fault.path)
            report(fault.code, path, f"{fault.message}{hint or fault.hint}", node.id)


class _Parts(msgspec.Struct, frozen=True):
    """What of a node is compiled before its dependencies are known."""

    config: Config
    condition: Condition | None
    expression: Expression | None

    @property
    def mentions(self) -> frozenset[str]:
        """The nodes that it names."""
        if self.expression is None:
            return self.needs
        return self.needs | self.expression.nodes

    @property
    def needs(self) -> frozenset[str]:
        """The nodes whose outputs starting it takes."""
        if self.condition is None:
            return self.config.references
        return self.config.references | self.condition.references

    def with_parents(self, parents: Collection[str]) -> _Parts:
        """With what the expression names bound to variables."""
        if self.expression is None:
            return self
        config = with_expression(self.config, self.expression, parents)
        return _Parts(config, self.condition, self.expression)


class _Compiler:
    def __init__(
        self,
        definition: Definition,
        handlers: Mapping[str, HandlerDefaults],
        problems: Problems,
        *,
        stored: bool,
    ) -> None:
        self.definition = definition
        self.handlers = handlers
        self.problems = problems
        self.stored = stored
        self.nodes: list[Node] = []
        self.numbers: dict[str, int] = {}
        self._paths: dict[str, dict[str, str]] = {}
        """By node, where it mentions others: only looked up for problems."""

    def compile(self) -> Plan | None:
        self._number_nodes()
        stated = [self._dependencies(node) for node in self.nodes]
        order = graph.topological_order(stated, graph.children_of(stated))
        self._report_cycles(stated, order)

        parts = [self._compile_parts(node) for node in self.nodes]
        dependencies: graph.Edges = stated
        if len(order) == len(self.nodes):
            dependencies = self._with_references(parts, stated, order)
        if self.problems.errors:
            return None

        children = graph.children_of(dependencies)
        if dependencies is not stated:
            order = graph.topological_order(dependencies, children)
        results, single = self._result_nodes(children)
        definition = self.definition
        return Plan(
            name=definition.name,
            nodes=[
                self._node(node, parts[i], tuple(dependencies[i]), children[i])
                for i, node in enumerate(self.nodes)
            ],
            numbers=self.numbers,
            order=order,
            on_failure=definition.on_failure,
            timeout_seconds=definition.timeout_seconds,
            input=definition.input,
            input_schema=definition.input_schema,
            result_nodes=results,
            single_result=single,
            dependency_counts=[len(direct) for direct in dependencies],
            roots=tuple(i for i, direct in enumerate(dependencies) if not direct),
        )

    def _number_nodes(self) -> None:
        for node in self.definition.nodes:
            if node.id in self.numbers:
                first = self.nodes[self.numbers[node.id]].path
                message = f"the id {quoted(node.id)} is taken by {first}; ids must differ"
                self.problems.error("duplicate_id", f"{node.path}.id", message, node.id)
                continue
            self.numbers[node.id] = len(self.nodes)
            self.nodes.append(node)

    def _dependencies(self, node: Node) -> tuple[int, ...]:
        numbers: list[int] = []
        for i, node_id in enumerate(node.dependencies):
            number = self.numbers.get(node_id)
            path = f"{node.path}.{node.dependencies_field}[{i}]"
            if number is None:
                hint = self.problems.did_you_mean(node_id, self.numbers)
                message = (
                    f"{quoted(node.id)} depends on {quoted(node_id)}, which isn't a node{hint}"
                )
                self.problems.error("unknown_dependency", path, message, node.id)
            elif node_id == node.id:
                message = (
                    f"{quoted(node_id)} can't depend on itself; remove it from its dependencies"
                )
                self.problems.error("self_dependency", path, message, node.id)
            else:
                numbers.append(number)
        return tuple(numbers)

    def _report_cycles(self, dependencies: graph.Edges, order: list[int]) -> None:
        for cycle in graph.find_cycles(dependencies, order):
            message = (
                f"these nodes wait for each other in a cycle: {self._shown_cycle(cycle)};"
                " remove one of the dependencies"
            )
            first = self.nodes[cycle[0]]
            self.problems.error(
                "cycle", f"{first.path}.{first.dependencies_field}", message, first.id
            )

    def _shown_cycle(self, cycle: list[int]) -> str:
        ids = [self.nodes[i].id[:KEY_CHARACTERS_MAX] for i in [*cycle, cycle[0]]]
        if len(ids) > CYCLE_NODES_MAX:
            ids = [*ids[:6], "…", *ids[-5:]]
        return " → ".join(ids)

    def _compile_parts(self, node: Node) -> _Parts:
        expression = self._expression(node)
        config = compile_config(
            node.config,
            self.numbers,
            f"{node.path}.config",
            node.id,
            self.problems,
            handler=node.handler,
            expression=expression,
            stored=self.stored,
        )
        return _Parts(config, self._condition(node), expression)

    def _node(
        self, node: Node, parts: _Parts, dependencies: tuple[int, ...], children: list[int]
    ) -> PlanNode:
        defaults = self.handlers.get(node.handler) or HandlerDefaults()
        parts = parts.with_parents([self.nodes[parent].id for parent in dependencies])
        config = parts.config
        condition = parts.condition
        uses_input = (
            config.uses_input
            or node.handler == "input"
            or (condition is not None and condition.uses_input)
        )
        return PlanNode(
            node_id=node.id,
            handler=node.handler,
            queue=node.queue or defaults.queue or node.handler,
            dependencies=dependencies,
            children=tuple(children),
            rule=node.trigger_rule,
            config=config,
            condition=condition,
            retry=node.retry or defaults.retry or Retry(),
            timeout_seconds=node.timeout_seconds
            or defaults.timeout_seconds
            or _default_timeout_seconds(node),
            queue_timeout_seconds=node.queue_timeout_seconds,
            optional=node.optional,
            dead_letter=not node.optional if node.dead_letter is None else node.dead_letter,
            fails_with_dependency=node.on_dependency_failure == "fail",
            is_data=node.handler in DATA_HANDLERS,
            fixed_config=None if config.slots else msgspec.json.encode(node.config),
            needs=parts.needs,
            uses_input=uses_input,
            names_queue=node.queue is not None,
        )

    def _condition(self, node: Node) -> Condition | None:
        if node.condition is None:
            return None
        try:
            return compile_condition(node.condition, self.numbers)
        except TemplateError as error:
            error.report(f"{node.path}.condition", node.id, self.problems, self.numbers)
            return None

    def _expression(self, node: Node) -> Expression | None:
        source = node.config.get("expression")
        variables = node.config.get("variables") or {}
        if node.handler not in EXPRESSION_HANDLERS or not isinstance(source, str):
            return None
        if not isinstance(variables, dict):
            return None  # a worker refuses it, unless it is a reference to an object
        try:
            expression = compile_expression(source, variables, self.numbers, self._aliases_of)
            if not self.stored and not expression.has_secrets:
                check_expression(expression, variables)
        except TemplateError as error:
            if self.stored:
                return None  # an older version took it: the node fails when it runs, as it did
            path = f"{node.path}.config.expression"
            error.report(path, node.id, self.problems, self.numbers)
            return Expression(source, "", {}, (), ())
        return expression

    def _aliases_of(self, node_id: str) -> Mapping[str, str]:
        return OUTPUT_ALIASES.get(self.nodes[self.numbers[node_id]].handler, NO_ALIASES)

    def _with_references(
        self, parts: list[_Parts], stated: graph.Edges, order: list[int]
    ) -> graph.Edges:
        """The dependencies with those that follow from references.

        A reference to a node that comes before anyway adds none.
        """
        mentions = [
            (number, self.numbers[node_id])
            for number, part in enumerate(parts)
            for node_id in part.mentions
        ]
        missing = sorted(graph.missing_ancestors(mentions, stated, order))
        derived = [pair for pair in missing if self._may_depend(*pair, parts)]
        if not derived:
            return stated

        edges = graph.with_edges(stated, derived)
        new_order = graph.topological_order(edges, graph.children_of(edges))
        if len(new_order) < len(edges):
            if not self.stored:
                self._report_reference_cycles(parts, edges, new_order, frozenset(derived))
            return stated
        return graph.with_edges(stated, graph.missing_above(derived, stated, edges, new_order))

    def _may_depend(self, number: int, other: int, parts: list[_Parts]) -> bool:
        """Whether a reference to a node that doesn't come before may become a dependency."""
        node = self.nodes[number]
        node_id = self.nodes[other].id
        if number == other:
            advice = "its own output; refer to a node that comes before"
        elif node.trigger_rule in EARLY_RULES:
            advice = (
                f"{quoted(node_id)}, which doesn't come before it; with {node.trigger_rule},"
                f" name {quoted(node_id)} in depends_on, or a node that comes after it"
            )
        else:
            return True
        if not self.stored:
            path = self._reference_paths(node, parts[number])[node_id]
            message = f"{quoted(node.id)} refers to {advice}"
            self.problems.error("not_an_ancestor", path, message, node.id)
        return False

    def _report_reference_cycles(
        self,
        parts: list[_Parts],
        edges: graph.Edges,
        order: list[int],
        derived: frozenset[tuple[int, int]],
    ) -> None:
        for cycle in graph.find_cycles(edges, order):
            parents = [cycle[-1], *cycle[:-1]]
            number, other = next(
                pair for pair in zip(cycle, parents, strict=True) if pair in derived
            )
            node = self.nodes[number]
            node_id = self.nodes[other].id
            message = (
                f"{quoted(node.id)} refers to {quoted(node_id)}, which only runs after it:"
                f" {self._shown_cycle(cycle)}; refer to a node that comes before"
            )
            path = self._reference_paths(node, parts[number])[node_id]
            self.problems.error("cycle", path, message, node.id)

    def _reference_paths(self, node: Node, parts: _Parts) -> dict[str, str]:
        """Where a node mentions each of the nodes that it needs; the first place of each."""
        if node.id in self._paths:
            return self._paths[node.id]
        paths: dict[str, str] = {}
        if parts.condition:
            paths = dict.fromkeys(parts.condition.references, f"{node.path}.condition")
        if parts.expression:
            path = f"{node.path}.config.expression"
            paths |= dict.fromkeys(parts.expression.nodes, path)
        for slot in reversed(parts.config.slots):
            slot_path = path_to(f"{node.path}.config", slot.document_path)
            for piece in slot.text:
                if isinstance(piece, Reference) and piece.kind == "node":
                    paths[piece.name] = slot_path
        self._paths[node.id] = paths
        return paths

    def _result_nodes(self, children: list[list[int]]) -> tuple[tuple[str, ...], bool]:
        outputs = [node.id for node in self.nodes if node.handler == "output"]
        if len(outputs) > 1 and "output" in outputs:
            outputs = ["output"]
        if outputs:
            return tuple(outputs), len(outputs) == 1
        return tuple(node.id for i, node in enumerate(self.nodes) if not children[i]), False


def _default_timeout_seconds(node: Node) -> float:
    """The time limit of a node for which neither the document nor its handler sets one.

    A `sleep` takes as long as its config says. Where that is a reference, nothing is known of it
    before it runs.
    """
    if node.handler != "sleep":
        return DEFAULT_TIMEOUT_SECONDS
    seconds = node.config.get("seconds", 0)
    if isinstance(seconds, (int, float)) and 0 <= seconds <= SECONDS_MAX:
        return max(DEFAULT_TIMEOUT_SECONDS, seconds + SLEEP_MARGIN_SECONDS)
    return SECONDS_MAX
