"""A `Plan`: a version of a workflow, compiled so that each step of running it is a look-up.

Nodes know their children by number, so that one completion touches only those. The plan is never
changed while an execution runs; an execution that gains nodes keeps them beside its plan.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from penstock.definition import graph
from penstock.definition.computed import Computed
from penstock.definition.condition import Condition, compile_condition
from penstock.definition.config import Config, compile_config, with_expression
from penstock.definition.document_fields import CATCHES_MAX
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
    NOTIFY,
    OUTPUT_ALIASES,
    SLEEP_MARGIN_SECONDS,
    WAITING_HANDLERS,
    Child,
    Definition,
    Each,
    HandlerDefaults,
    Node,
    OnFailure,
    Repeat,
    Retry,
    TriggerRule,
    every_node,
)
from penstock.definition.parse import Limits, check_values
from penstock.definition.problems import KEY_CHARACTERS_MAX, Problem, Problems, path_to, quoted
from penstock.definition.read import check_handlers, read
from penstock.definition.region_settings import PREVIOUS, ROUND, RegionSettings
from penstock.definition.schema import compile_schema
from penstock.definition.template import Names, Reference, TemplateError
from penstock.definition.waits import IGNORED, wait_faults
from penstock.errors import InvalidWorkflow

ITEMS_MAX = 10_000
"""Items of a map, unless the settings say otherwise."""
NO_ALIASES: Mapping[str, str] = {}
CYCLE_NODES_MAX = 12
"""How many nodes of a cycle a message lists."""
CLEANUP_RULES: frozenset[TriggerRule] = frozenset({"all_done", "one_failed"})
"""Nodes with these rules still run when an execution is failing fast, or is ended early."""
ADDRESS_INDEX = re.compile(r"\[\d+\]")
EARLY_RULES: frozenset[TriggerRule] = frozenset({"one_success", "one_failed"})
"""Rules that start a node before all of its dependencies have ended.

A reference doesn't make a dependency there: it would be one more node that can start it.
"""


Catches: TypeAlias = tuple[tuple[int, tuple[str, ...]], ...]


class Body(msgspec.Struct, gc=False):
    """The nodes of a map or a loop, compiled once, in numbers of their own."""

    nodes: list[PlanNode]
    numbers: dict[str, int]
    order: list[int]
    dependency_counts: list[int]
    roots: tuple[int, ...]
    sinks: tuple[int, ...]


class RegionPlan(msgspec.Struct, gc=False):
    """What a map or a loop adds to its node."""

    body: Body
    is_single: bool
    """An item is its one node: `shout[3]` and not `each[3].parse`."""
    item_name: str
    """In references: the item; in a loop, what the last round carried on."""
    index_name: str
    each: Each | None
    repeat: Repeat | None
    source: Config | None
    """The list, as the value of `for_each`."""
    initial: Config | None
    key: Config | None
    collect: Config | None
    """The output of an item, or what a round carries on."""
    until: Condition | None

    @property
    def needs(self) -> frozenset[str]:
        """The nodes whose outputs the list takes."""
        config = self.source or self.initial
        return config.references if config else frozenset()


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
    outcomes: frozenset[str] = frozenset()
    """Nodes of which it asks how they have ended."""
    is_about_end: bool = False
    """Whether it asks how the execution ends."""
    catches: Catches = ()
    """The nodes whose failures it handles, with patterns of the errors that are meant."""
    catchers: Catches = ()
    """The nodes that handle its failure, with the same patterns."""
    region: RegionPlan | None = None
    waits: bool = False
    """The engine waits for a time, for somebody or for a child, and no worker gets a task.

    A `timeout_seconds` of 0 then means that it has no limit.
    """
    is_plain: bool = False
    """A worker gets its config as it stands here: nothing is decided or computed before."""
    child: Child | None = None
    """Of a node that runs another workflow."""

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
    cleanup_timeout_seconds: float
    input: dict[str, Any]
    input_schema: Any
    result_nodes: tuple[str, ...]
    """Whose outputs are the execution's output: the one `output` node, or the sinks."""
    single_result: bool
    dependency_counts: list[int]
    roots: tuple[int, ...]
    version: int = 0
    items_max: int = ITEMS_MAX
    """How many items a map may have."""
    has_children: bool = False
    """Whether a node of it runs another workflow."""

    def handler_nodes(self) -> Iterator[PlanNode]:
        """The nodes, and those of bodies in place of maps and loops."""
        stack = self.nodes[::-1]
        while stack:
            node = stack.pop()
            if node.region is None:
                yield node
            else:
                stack.extend(reversed(node.region.body.nodes))

    @property
    def has_regions(self) -> bool:
        return any(node.region is not None for node in self.nodes)


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
    for node in every_node(definition.nodes):
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
    for node in every_node(definition.nodes):
        faults = (
            *config_faults(node.handler, node.config, rules),
            *wait_faults(node.handler, node.config),
        )
        for fault in faults:
            hint = problems.did_you_mean(fault.unknown, fault.names) if fault.unknown else ""
            path = path_to(f"{node.path}.config", fault.path)
            report_fault = problems.warn if fault.code == IGNORED else report
            report_fault(fault.code, path, f"{fault.message}{hint or fault.hint}", node.id)


def _names_in(piece: Reference | Computed) -> Iterable[str]:
    """The nodes that a reference or an expression names."""
    if isinstance(piece, Computed):
        return piece.references | piece.outcomes_of
    return (piece.name,) if piece.kind in ("node", "outcome") else ()


class _Parts(msgspec.Struct, frozen=True):
    """What of a node is compiled before its dependencies are known."""

    config: Config
    condition: Condition | None
    expression: Expression | None
    region: _RegionParts | None = None

    @property
    def mentions(self) -> frozenset[str]:
        """The nodes that it names."""
        if self.region is not None:
            return self.needs | self.region.plan.needs | self.region.mentions
        if self.expression is None:
            return self.needs
        return self.needs | self.expression.nodes

    @property
    def needs(self) -> frozenset[str]:
        """The nodes whose outputs starting it takes."""
        if self.condition is None:
            return self.config.references
        return self.config.references | self.condition.references

    @property
    def outcomes(self) -> frozenset[str]:
        """The nodes of which it asks how they have ended."""
        if self.condition is None:
            return self.config.outcomes
        return self.config.outcomes | self.condition.outcomes_of

    @property
    def is_about_end(self) -> bool:
        """Whether it asks how the execution ends."""
        in_condition = self.condition is not None and self.condition.is_about_end
        return in_condition or self.config.is_about_end

    def with_parents(self, parents: Collection[str]) -> _Parts:
        """With what the expression names bound to variables."""
        if self.expression is None:
            return self
        config = with_expression(self.config, self.expression, parents)
        return _Parts(config, self.condition, self.expression)


class _RegionParts(NamedTuple):
    plan: RegionPlan
    mentions: frozenset[str]
    """Nodes around it that its body names."""


class _Compiler:
    """Compiles the nodes of a document, or of a body."""

    def __init__(  # noqa: PLR0913 -- the nodes, and what is around them
        self,
        definition: Definition,
        handlers: Mapping[str, HandlerDefaults],
        problems: Problems,
        *,
        stored: bool,
        body: list[Node] | None = None,
        around: Names | None = None,
        owner_id: str | None = None,
    ) -> None:
        """`around`: what the nodes of a body may refer to besides each other.

        `owner_id`: whose body it is, which none of its nodes may be called.
        """
        self.definition = definition
        self.handlers = handlers
        self.problems = problems
        self.stored = stored
        self.written = definition.nodes if body is None else body
        self.is_body = body is not None
        self.around = around
        self.owner_id = owner_id
        self.nodes: list[Node] = []
        self.numbers: dict[str, int] = {}
        self.names: dict[str, int] = self.numbers
        """What references may begin with."""
        self.mentions: set[str] = set()
        """Nodes around a body that it names."""
        self._paths: dict[str, dict[str, str]] = {}
        """By node, where it mentions others: only looked up for problems."""

    def compile(self) -> Plan | None:
        body = self.compile_nodes()
        if body is None:
            return None
        results, single = self._result_nodes(body)
        definition = self.definition
        return Plan(
            name=definition.name,
            nodes=body.nodes,
            numbers=body.numbers,
            order=body.order,
            on_failure=definition.on_failure,
            timeout_seconds=definition.timeout_seconds,
            cleanup_timeout_seconds=definition.cleanup_timeout_seconds,
            input=definition.input,
            input_schema=definition.input_schema,
            result_nodes=results,
            single_result=single,
            dependency_counts=body.dependency_counts,
            roots=body.roots,
            has_children=any(node.child for node in every_node(definition.nodes)),
        )

    def compile_nodes(self) -> Body | None:
        self._number_nodes()
        self._check_catches()
        self._collect_names()
        stated = [self._dependencies(node) for node in self.nodes]
        order = graph.topological_order(stated, graph.children_of(stated))
        self._report_cycles(stated, order)

        parts = [self._compile_parts(node) for node in self.nodes]
        dependencies: graph.Edges = stated
        if len(order) == len(self.nodes):
            dependencies = self._with_references(parts, stated, order)
            self._check_outcomes(parts, dependencies)
        if self.problems.errors:
            return None

        children = graph.children_of(dependencies)
        if dependencies is not stated:
            order = graph.topological_order(dependencies, children)
        catchers = self._catchers()
        return Body(
            nodes=[
                self._node(node, parts[i], tuple(dependencies[i]), children[i], catchers.get(i, ()))
                for i, node in enumerate(self.nodes)
            ],
            numbers=self.numbers,
            order=order,
            dependency_counts=[len(direct) for direct in dependencies],
            roots=tuple(i for i, direct in enumerate(dependencies) if not direct),
            sinks=tuple(
                i
                for i, direct in enumerate(children)
                if not direct and self.nodes[i].handler != NOTIFY
            ),
        )

    def _number_nodes(self) -> None:
        for node in self.written:
            if node.id in self.numbers:
                first = self.nodes[self.numbers[node.id]].path
                message = f"the id {quoted(node.id)} is taken by {first}; ids must differ"
                self.problems.error("duplicate_id", f"{node.path}.id", message, node.id)
                continue
            self.numbers[node.id] = len(self.nodes)
            self.nodes.append(node)

    def _collect_names(self) -> None:
        """What references may begin with; where there are maps or loops, more than the nodes."""
        regions = [node for node in self.nodes if node.nodes]
        if self.is_body:
            self._refuse_taken_ids()
        if regions:
            self._refuse_ambiguous_ids(regions)
        if self.around is None and not regions:
            return
        names = Names(self.around or {})
        names.update(self.numbers)
        inside = dict(self.around.inside) if self.around is not None else {}
        for node in regions:
            if not node.is_single:
                inside.update(_ids_inside(node))
        names.inside = {inner: owner for inner, owner in inside.items() if inner not in names}
        names.advice = self.around.advice if self.around is not None else {}
        self.names = names

    def _refuse_taken_ids(self) -> None:
        around: Mapping[str, int] = self.around or {}
        for node in self.nodes:
            if node.id in around or node.id == self.owner_id:
                message = (
                    f"the id {quoted(node.id)} is taken by a node or an item around it;"
                    " ids inside must differ from those outside"
                )
                self.problems.error("name_taken", f"{node.path}.id", message, node.id)

    def _refuse_ambiguous_ids(self, regions: list[Node]) -> None:
        """An id that could be the address of an item."""
        ids = {node.id for node in regions}
        for node in self.nodes:
            for bracket in ADDRESS_INDEX.finditer(node.id):
                owner = node.id[: bracket.start()]
                if owner in ids:
                    message = (
                        f"the id {quoted(node.id)} could be an item of {quoted(owner)};"
                        " choose another"
                    )
                    self.problems.error("ambiguous_address", f"{node.path}.id", message, node.id)
                    break

    def _dependencies(self, node: Node) -> tuple[int, ...]:
        numbers: list[int] = []
        for i, node_id in enumerate(node.dependencies):
            number = self.numbers.get(node_id)
            path = f"{node.path}.{node.dependencies_field}[{i}]"
            inside = self.names.inside if isinstance(self.names, Names) else {}
            if number is None and (node_id in self.names or node_id in inside):
                owner = inside.get(node_id)
                advice = f"depend on {quoted(owner)}" if owner else "put it on the map or loop"
                message = (
                    f"{quoted(node.id)} depends on {quoted(node_id)} across the border of a map"
                    f" or loop; {advice}"
                )
                self.problems.error("dependency_crosses_map", path, message, node.id)
            elif number is None:
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
        numbers += [number for number, _ in self._catches(node) if number not in numbers]
        return tuple(numbers)

    def _catches(self, node: Node) -> Catches:
        """What it catches, by number; without those that it can't."""
        catches = [(self.numbers.get(catch.node_id), catch.on) for catch in node.catches]
        return tuple(
            (number, patterns)
            for number, patterns in catches
            if number is not None and self.nodes[number].id != node.id
        )

    def _check_catches(self) -> None:
        catchers: Counter[str] = Counter()
        for node in self.nodes:
            for i, catch in enumerate(node.catches):
                path = f"{node.path}.catches[{i}]"
                if catch.node_id not in self.numbers:
                    self._report_unknown_catch(node, catch.node_id, path)
                elif catch.node_id == node.id:
                    message = f"{quoted(node.id)} can't catch its own failure"
                    self.problems.error("self_dependency", path, message, node.id)
                catchers[catch.node_id] += 1
                if catchers[catch.node_id] == CATCHES_MAX + 1:
                    message = (
                        f"more than {CATCHES_MAX} nodes catch {quoted(catch.node_id)};"
                        " let fewer nodes handle its failure"
                    )
                    self.problems.error("bad_catch", path, message, node.id)

    def _report_unknown_catch(self, node: Node, caught: str, path: str) -> None:
        owner = next((owner for owner in self.nodes if caught in dict(_ids_inside(owner))), None)
        about = f"{quoted(node.id)} catches {quoted(caught)}"
        if owner is not None:
            message = f"{about}, which is inside of {quoted(owner.id)}; catch {quoted(owner.id)}"
            self.problems.error("dependency_crosses_map", path, message, node.id)
            return
        hint = self.problems.did_you_mean(caught, self.numbers)
        message = f"{about}, which isn't a node{hint}"
        self.problems.error("unknown_dependency", path, message, node.id)

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
        if node.nodes:
            config = Config(node.config, (), frozenset())
            return _Parts(config, self._condition(node), None, self._region(node))
        expression = self._expression(node)
        config = compile_config(
            node.config,
            self.names,
            f"{node.path}.config",
            node.id,
            self.problems,
            handler=node.handler,
            expression=expression,
            stored=self.stored,
            written=f"{node.path}.switch" if node.is_switch else None,
        )
        return _Parts(config, self._condition(node), expression)

    def _catchers(self) -> dict[int, Catches]:
        catchers: dict[int, Catches] = {}
        for i, node in enumerate(self.nodes):
            for number, patterns in self._catches(node):
                catchers[number] = (*catchers.get(number, ()), (i, patterns))
        return catchers

    def _node(
        self,
        node: Node,
        parts: _Parts,
        dependencies: tuple[int, ...],
        children: list[int],
        catchers: Catches,
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
        region = parts.region.plan if parts.region else None
        is_data = node.handler in DATA_HANDLERS
        waits = node.handler in WAITING_HANDLERS
        is_for_worker = not (is_data or waits or region)
        return PlanNode(
            node_id=node.id,
            handler=node.handler,
            queue=node.queue or defaults.queue or node.handler,
            dependencies=dependencies,
            children=tuple(children),
            rule="caught" if node.catches else node.trigger_rule,
            config=config,
            condition=condition,
            retry=node.retry or defaults.retry or Retry(),
            timeout_seconds=self._timeout_seconds(node, defaults),
            queue_timeout_seconds=node.queue_timeout_seconds,
            optional=node.optional,
            dead_letter=not node.optional if node.dead_letter is None else node.dead_letter,
            fails_with_dependency=node.on_dependency_failure == "fail",
            is_data=is_data,
            fixed_config=msgspec.json.encode(node.config) if config.is_fixed else None,
            needs=parts.needs,
            uses_input=uses_input,
            names_queue=node.queue is not None,
            outcomes=parts.outcomes,
            is_about_end=parts.is_about_end,
            catches=self._catches(node),
            catchers=catchers,
            region=region,
            waits=waits,
            is_plain=is_for_worker and condition is None and config.is_fixed and not parts.needs,
            child=node.child,
        )

    def _timeout_seconds(self, node: Node, defaults: HandlerDefaults) -> float:
        if node.nodes or node.handler in WAITING_HANDLERS:
            return node.timeout_seconds or 0.0  # none: what waits has no default
        return node.timeout_seconds or defaults.timeout_seconds or _default_timeout_seconds(node)

    def _condition(self, node: Node) -> Condition | None:
        if node.condition is None:
            return None
        try:
            return compile_condition(node.condition, self.names)
        except TemplateError as error:
            error.report(f"{node.path}.condition", node.id, self.problems, self.names)
            return None

    def _region(self, node: Node) -> _RegionParts | None:
        """The body of a map or a loop, and what is around it."""
        around = self._names_around(node)
        compiler = _Compiler(
            self.definition,
            self.handlers,
            self.problems,
            stored=self.stored,
            body=node.nodes,
            around=around,
            # of a single node, the node inside has the id of the map
            owner_id=None if node.nodes[0].path == node.path else node.id,
        )
        body = compiler.compile_nodes()
        own = compiler.names
        each = node.each
        repeat = node.repeat
        settings = RegionSettings(node, self.problems)
        source = settings.source(self.names)
        initial = settings.initial(self.names)
        key = settings.key(_names_of_item(each, around)) if each else None
        collect = settings.collect(own)
        until = settings.until(own)
        if body is None:
            return None
        used = compiler.mentions
        for config in (collect, until):
            used |= config.references if config else frozenset()
        region = RegionPlan(
            body=body,
            is_single=node.is_single,
            item_name=each.item_name if each else PREVIOUS,
            index_name=each.index_name if each else ROUND,
            each=each,
            repeat=repeat,
            source=source,
            initial=initial,
            key=key,
            collect=collect,
            until=until,
        )
        mentions = frozenset(
            name for name in used if name not in compiler.numbers and around.get(name, -1) >= 0
        )
        return _RegionParts(region, mentions)

    def _names_around(self, node: Node) -> Names:
        """What the nodes of a body may refer to besides each other."""
        around = Names(self.names)
        around.inside = self.names.inside if isinstance(self.names, Names) else {}
        around.advice = {
            **(self.names.advice if isinstance(self.names, Names) else {}),
            node.id: "a node inside of a map or a loop can't refer to that itself",
        }
        around.pop(node.id, None)
        names = (PREVIOUS, ROUND)
        if node.each is not None:
            names = (node.each.item_name, node.each.index_name)
            self._hide_outer_item(node.each, around)
        for name in names:
            if around.get(name, -1) >= 0 or name == node.id:
                self._report_taken_name(node, name)
            around[name] = -1
        return around

    def _hide_outer_item(self, each: Each, around: Names) -> None:
        """Let `item` be the innermost map's, or nobody's: an outer one needs a name of its own."""
        default = Each(None)
        names = ((default.item_name, each.item_name), (default.index_name, each.index_name))
        advice = dict(around.advice)
        for written, name in names:
            if written == name:
                continue
            advice[written] = f"here that is {{{{ {name} }}}}"
            if around.get(written) == -1:
                advice[written] += '; an outer map\'s item is reached by the name in its "as"'
                del around[written]
        around.advice = advice

    def _report_taken_name(self, node: Node, name: str) -> None:
        """A node has the name that an item, its index or a loop's last round has in a body."""
        is_written = node.each is not None and name in (node.each.written_name, node.id)
        if is_written and name != node.id:
            message = f"the name {quoted(name)} is taken by a node; choose another"
            self.problems.error("name_taken", f"{node.path}.as", message, node.id)
            return
        other = self.nodes[self.numbers[name]] if name in self.numbers else node
        meaning = f"inside of {quoted(node.id)}, {quoted(name)} is {_meaning_of(node, name)}"
        remedy = "rename the node"
        if node.each is not None:
            remedy += ', or name the item otherwise with "as"'
        self.problems.error(
            "name_taken",
            f"{other.path}.id",
            f"{meaning}, and a node is called so; {remedy}",
            other.id,
        )

    def _expression(self, node: Node) -> Expression | None:
        source = node.config.get("expression")
        variables = node.config.get("variables") or {}
        if node.handler not in EXPRESSION_HANDLERS or not isinstance(source, str):
            return None
        if not isinstance(variables, dict):
            return None  # a worker refuses it, unless it is a reference to an object
        try:
            expression = compile_expression(source, variables, self.names, self._aliases_of)
            if not self.stored and not expression.has_secrets:
                check_expression(expression, variables)
        except TemplateError as error:
            if self.stored:
                return None  # an older version took it: the node fails when it runs, as it did
            path = f"{node.path}.config.expression"
            error.report(path, node.id, self.problems, self.names)
            return Expression(source, "", {}, (), ())
        return expression

    def _aliases_of(self, node_id: str) -> Mapping[str, str]:
        number = self.numbers.get(node_id)
        if number is None:
            return NO_ALIASES
        return OUTPUT_ALIASES.get(self.nodes[number].handler, NO_ALIASES)

    def _with_references(
        self, parts: list[_Parts], stated: graph.Edges, order: list[int]
    ) -> graph.Edges:
        """The dependencies with those that follow from references.

        A reference to a node that comes before anyway adds none.
        """
        mentions: list[tuple[int, int]] = []
        for number, part in enumerate(parts):
            for node_id in part.mentions:
                if node_id in self.numbers:
                    mentions.append((number, self.numbers[node_id]))
                else:
                    self.mentions.add(node_id)
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

    def _check_outcomes(self, parts: list[_Parts], dependencies: graph.Edges) -> None:
        """How a node has ended is known only to those that come after it."""
        if self.stored:
            return  # an older version took such names for keys of outputs
        for node, part in zip(self.nodes, parts, strict=True):
            is_cleanup = node.trigger_rule in CLEANUP_RULES and not node.catches
            if part.is_about_end and (self.is_body or not is_cleanup):
                message = (
                    f"{quoted(node.id)} asks how the execution ends, which only clean-up nodes"
                    " know; set trigger_rule to all_done or one_failed"
                )
                self.problems.error("not_clean_up", node.path, message, node.id)

        asked: list[tuple[int, int]] = []
        for number, part in enumerate(parts):
            for node_id in sorted(part.outcomes):
                if node_id in self.numbers:
                    asked.append((number, self.numbers[node_id]))
                else:
                    self._report_outcome_outside(number, node_id, part)
        if not asked:
            return
        order = graph.topological_order(dependencies, graph.children_of(dependencies))
        for number, other in graph.missing_ancestors(asked, dependencies, order):
            node = self.nodes[number]
            node_id = self.nodes[other].id
            message = (
                f"{quoted(node.id)} asks how {quoted(node_id)} has ended,"
                " which doesn't come before it; name it in depends_on or catches"
            )
            if number == other:
                message = f"{quoted(node.id)} asks how it has ended itself"
            path = self._reference_paths(node, parts[number])[node_id]
            self.problems.error("not_an_ancestor", path, message, node.id)

    def _report_outcome_outside(self, number: int, node_id: str, part: _Parts) -> None:
        node = self.nodes[number]
        message = (
            f"{quoted(node.id)} asks how {quoted(node_id)} has ended, which is outside of its map"
            " or loop; ask in a node outside, and refer to its output"
        )
        path = self._reference_paths(node, part).get(node_id, node.path)
        self.problems.error("not_in_body", path, message, node.id)

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
            path = self._reference_paths(node, parts[number]).get(node_id, node.path)
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
            path = self._reference_paths(node, parts[number]).get(node_id, node.path)
            self.problems.error("cycle", path, message, node.id)

    def _reference_paths(self, node: Node, parts: _Parts) -> dict[str, str]:
        """Where a node mentions each of the nodes that it needs; the first place of each."""
        if node.id in self._paths:
            return self._paths[node.id]
        paths: dict[str, str] = {}
        if parts.condition:
            names = parts.condition.references | parts.condition.outcomes_of
            paths = dict.fromkeys(names, f"{node.path}.condition")
        if parts.expression:
            path = f"{node.path}.config.expression"
            paths |= dict.fromkeys(parts.expression.nodes, path)
        config = parts.config
        texts = [(slot.document_path, slot.text) for slot in reversed(config.slots)]
        texts += [((*slot.path, slot.key), slot.text) for slot in config.keys]
        for steps, text in texts:
            slot_path = path_to(f"{node.path}.config", steps)
            for piece in text:
                if not isinstance(piece, str):
                    paths |= dict.fromkeys(_names_in(piece), slot_path)
        self._paths[node.id] = paths
        return paths

    def _result_nodes(self, body: Body) -> tuple[tuple[str, ...], bool]:
        outputs = [node.id for node in self.nodes if node.handler == "output"]
        if len(outputs) > 1 and "output" in outputs:
            outputs = ["output"]
        if outputs:
            return tuple(outputs), len(outputs) == 1
        return tuple(self.nodes[sink].id for sink in body.sinks), False


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


def _names_of_item(each: Each, around: Names) -> Names:
    """What the key of an item may refer to."""
    names = Names({each.item_name: -1, each.index_name: -1})
    others = dict.fromkeys(around, f"a key is made of {{{{ {each.item_name} }}}} alone")
    names.advice = {**around.advice, **others}
    return names


def _meaning_of(node: Node, name: str) -> str:
    if node.each is None:
        return "the last round" if name == PREVIOUS else "the number of the round"
    return "the item" if name == node.each.item_name else "the item's index"


def _ids_inside(node: Node) -> Iterator[tuple[str, str]]:
    """The ids inside a map or a loop, at any depth, each with the outermost owner's."""
    stack = list(node.nodes)
    while stack:
        inner = stack.pop()
        yield inner.id, node.id
        stack.extend(inner.nodes)
