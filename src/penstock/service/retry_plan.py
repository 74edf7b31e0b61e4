"""The plan of a retry: what it reuses of a finished execution, what it runs, and why. Pure.

A node's output is reused if the node completed, if its definition is the same in the version that
runs now, and if nothing before it runs again: then it would be given the same config as before. A
branch that wasn't taken is decided again, from the same outputs and so with the same result. That
is no reason to run what comes after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from penstock.definition.addresses import node_at, outermost_item
from penstock.definition.model import NOTIFY, NOTIFY_SUFFIX
from penstock.definition.plan import Plan, PlanNode, RegionPlan
from penstock.engine.commands import NodeRun
from penstock.engine.events import SignalReceived, Value
from penstock.engine.reasons import Reason
from penstock.engine.reused_outputs import IDENTITY, item_name
from penstock.engine.states import NodeState
from penstock.engine.waiting import awaited_by, fits
from penstock.errors import Conflict, NotFound
from penstock.spelling import nearest_name
from penstock.stores.base import Stored
from penstock.views.retries import Retried, RetriedItems, RetryItems, RetryRun

NO_IDENTITIES: Mapping[str, list[str]] = {}
SAMPLE_MAX = 10
"""How many of the items that run a preview names."""
NOT_TAKEN = ("condition_false", "branch_not_taken")
DECIDED_AGAIN = "its branch wasn't taken; the condition is decided again"
ASKED_FOR = "asked for with from"
NEVER_RAN = "never ran"
UNBEGUN = (NodeState.SKIPPED, NodeState.CANCELLED)
ENDED_BADLY = {NodeState.FAILED: "failed", NodeState.CANCELLED: "cancelled"}


class RetryPlan(msgspec.Struct):
    """The plan of a retry.

    Every node is in one of the two lists, each node after its dependencies.
    """

    version: int
    reused: list[str]
    runs: list[RetryRun]
    items: dict[str, Value] = {}
    """Outputs of items and rounds that are reused, by the map's address and their identity."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing in a retry could come out differently."""
        return all(run.reason == DECIDED_AGAIN for run in self.runs)

    def view(self, retry_id: str | None, retry_of: str) -> Retried:
        """What users see of a retry; a preview has no `retry_id`."""
        return Retried(
            execution_id=retry_id,
            retry_of=retry_of,
            version=self.version,
            keeps=self.reused,
            runs=self.runs,
        )


class _Lists(NamedTuple):
    """The identities of the items of a map."""

    before: list[str]
    """In the execution that is retried; none if its list can't be made again."""
    now: list[str] | None
    """In the retry. None: it isn't known before its list is made again."""

    def gone(self) -> set[int]:
        """The indexes of items that aren't in the list any more, as far as that is known."""
        if self.now is None:
            return set()
        remaining = set(self.now)
        return {i for i, identity in enumerate(self.before) if identity not in remaining}

    def count_new(self) -> int | None:
        return None if self.now is None else len(set(self.now).difference(self.before))


def plan_retry(  # noqa: PLR0913 -- what is asked for, and what there is
    stored: Stored,
    old: Plan,
    new: Plan,
    *,
    start: str | None = None,
    items_to_run: RetriedItems | None = None,
    identities: Mapping[str, list[str]] = NO_IDENTITIES,
    new_identities: Mapping[str, list[str]] | None = None,
) -> RetryPlan:
    """Plan a retry. The node `start` and all that come after it run in any case.

    If `start` is an item, or a node inside of one, the other items are kept. Of a map that runs
    again, the items that completed are kept, unless `items_to_run` says `all` or, without it, the
    map is `start`. `identities` has those of the items of maps, and `new_identities` those that the
    new version's lists have with the same outputs; None: the same. Raises `NotFound` if there is no
    such node, and `Conflict` if a loop can't go on where it is asked to.
    """
    start, start_index = _start_of(new, start)
    plan = RetryPlan(new.version, [], [])
    untaken = _untaken_branches(stored, old)
    notifications: list[str] = []
    unchanged: set[str] = set()
    """Nodes whose children see what they saw before."""
    for number in new.order:
        node = new.nodes[number]
        node_id = node.node_id
        changed_parent = _changed_parent(new, node, unchanged)
        if node.handler == NOTIFY:
            notifications.append(node_id)
            continue
        run = untaken.get(node_id) or stored.runs.get(node_id)

        reason = _reason(node, run, old, new)
        items: RetryItems | UnsetType = UNSET
        if node_id == start:
            reason = ASKED_FOR
        elif reason is None and changed_parent is not None:
            reason = f"comes after {changed_parent}, which runs again"

        if reason is None:
            plan.reused.append(node_id)
            unchanged.add(node_id)
        else:
            is_whole = items_to_run == "all" or (
                items_to_run is None and node_id == start and start_index is None
            )
            if node.region is not None and node_id in old.numbers and not is_whole:
                first = start_index if node_id == start else None
                made_again = _is_made_again(node.region, changed_parent, unchanged)
                lists = _lists_of(node_id, identities, new_identities, made_again=made_again)
                items = _keep_items(plan, stored, node_id, old, new, lists, first)
                if items:
                    items.decided_again = made_again
                    reason = reason if node_id == start else _items_reason(items, run, reason)
            plan.runs.append(RetryRun(node_id, reason, items))
        if reason == DECIDED_AGAIN and changed_parent is None and _decides_alike(node):
            unchanged.add(node_id)
    _add_notifications(plan, stored, notifications)
    return plan


def _add_notifications(plan: RetryPlan, stored: Stored, notifications: Sequence[str]) -> None:
    """Tell others again of approvals that ask again, and of no other."""
    reasons = {run.node_id: run.reason for run in plan.runs}
    for node_id in notifications:
        approval_id = node_id.removesuffix(NOTIFY_SUFFIX)
        if approval_id in reasons:
            plan.runs.append(RetryRun(node_id, f"{approval_id} asks again", UNSET))
        else:
            plan.reused.append(node_id)
            if node_id not in stored.outputs:  # it failed, and the decision was made all the same
                plan.items[node_id] = b'{"notified":0}'


def _start_of(plan: Plan, start: str | None) -> tuple[str | None, int | None]:
    """The node to start at, and the item of it."""
    if start is None or start in plan.numbers:
        return start, None
    address = outermost_item(plan, start)
    if address is None or node_at(plan, start) is None:
        name = nearest_name(start, plan.numbers)
        hint = f"; did you mean {name!r}?" if name else ""
        raise NotFound(f"{plan.name}@{plan.version} has no node {start!r}{hint}")
    return address


def _is_made_again(region: RegionPlan, changed_parent: str | None, unchanged: set[str]) -> bool:
    """Whether the list of a map may become another one, for all that is known before it runs."""
    source = region.source
    if source is None:
        return changed_parent is not None
    if source.slots and b"execution" in msgspec.json.encode(source.value):
        return True  # the retry has another id
    return not source.references | source.outcomes <= unchanged


def _lists_of(
    node_id: str,
    identities: Mapping[str, list[str]],
    new_identities: Mapping[str, list[str]] | None,
    *,
    made_again: bool,
) -> _Lists:
    if new_identities is None:
        new_identities = identities
    before = identities.get(node_id)
    now = None if made_again or before is None else new_identities.get(node_id)
    return _Lists(before or [], now)


def _keep_items(  # noqa: PLR0913, PLR0917 -- two executions' plans, and what is known of the items
    plan: RetryPlan,
    stored: Stored,
    node_id: str,
    old: Plan,
    new: Plan,
    lists: _Lists,
    start_index: int | None,
) -> RetryItems | UnsetType:
    """Note the outputs of items that a retry keeps; the rest of them run."""
    run = stored.runs.get(node_id)
    old_node = old.nodes[old.numbers[node_id]]
    node = new.nodes[new.numbers[node_id]]
    if run is None or run.more is None or old_node.region is None or node.region is None:
        return UNSET
    if old is not new and _region_meaning(old_node.region) != _region_meaning(node.region):
        return UNSET
    is_loop = node.region.repeat is not None
    indexes = range(1, run.more.opened + 1) if is_loop else range(run.more.opened)
    gone = lists.gone()
    completed: list[int] = []
    sample: list[str] = []
    for index in indexes:
        address = f"{node_id}[{index}]"
        item_run = stored.runs.get(address)
        is_complete = item_run is not None and item_run.state is NodeState.COMPLETED
        is_start = index == start_index or (is_loop and start_index and index > start_index)
        if is_complete and not is_start:
            completed.append(index)
        elif index not in gone and len(sample) < SAMPLE_MAX:
            sample.append(address)
    if is_loop:
        completed = _kept_rounds(completed, stored, node_id, run.more.opened, start_index)
        _check_previous(stored, node_id, completed, start_index)
    completed = [index for index in completed if is_loop or index < len(lists.before)]
    for index in completed:
        identity = str(index) if is_loop else lists.before[index]
        address = f"{node_id}[{index}]"
        plan.items[item_name(node_id, identity)] = stored.outputs.get(address, b"null")
    for name, output in stored.outputs.items():
        if name.startswith(f"{node_id}{IDENTITY}"):  # a retry's that didn't come to them
            plan.items.setdefault(name, output)
    total = run.more.opened if is_loop else run.more.size
    keeps = len(completed) - len(gone.intersection(completed))
    return RetryItems(
        runs=total - len(gone) - keeps,
        keeps=keeps,
        sample=sample,
        new=lists.count_new(),
        gone=None if lists.now is None else len(gone),
    )


def _kept_rounds(
    completed: list[int], stored: Stored, node_id: str, opened: int, start_index: int | None
) -> list[int]:
    """Rounds before the one that failed. A loop that had no more rounds begins anew."""
    last = stored.runs.get(f"{node_id}[{opened}]")
    if start_index is None and last is not None and last.state is NodeState.COMPLETED:
        return []
    return completed


def _check_previous(
    stored: Stored, node_id: str, completed: Sequence[int], start_index: int | None
) -> None:
    """Refuse to go on at a round whose `previous` isn't kept any more. Raises `Conflict`."""
    if not completed or f"{node_id}[{completed[-1]}]" in stored.outputs:
        return
    rounds = range(completed[-1] + 1, 1 + _opened(stored, node_id))
    first = next((i for i in rounds if f"{node_id}[{i}]" in stored.outputs), None)
    advice = f"; the first round to go on at is {node_id}[{first + 1}]" if first else ""
    raise Conflict(
        f"{node_id}[{start_index}] can't run again: what {node_id}[{completed[-1]}] carried on"
        f" isn't kept (keep_rounds){advice}, or begin at the first with from={node_id}"
    )


def _opened(stored: Stored, node_id: str) -> int:
    more = stored.runs[node_id].more
    return 0 if more is None else more.opened


def _items_reason(items: RetryItems, run: NodeRun | None, reason: str) -> str:
    if run is None or run.state not in ENDED_BADLY:
        return reason
    return f"{items.runs:,} of {items.runs + items.keeps:,} items have to run"


def _region_meaning(region: RegionPlan) -> bytes:
    """Everything in a body that determines what its items come to."""
    body = region.body
    nodes: list[Any] = []
    for node in body.nodes:
        inner = None if node.region is None else _region_meaning(node.region)
        parents = sorted(body.nodes[parent].node_id for parent in node.dependencies)
        condition = node.condition.source if node.condition else None
        nodes.append(
            [node.node_id, node.handler, node.config.value, parents, condition, node.rule, inner]
        )
    collect = region.collect.value if region.collect else None
    key = region.key.value if region.key else None
    until = region.until.source if region.until else None
    names = [region.item_name, region.is_single]
    return msgspec.json.encode([nodes, collect, key, until, names], order="deterministic")


def say_who_waits(plan: RetryPlan, stored: Stored, unused: Sequence[SignalReceived]) -> None:
    """Say of nodes that had begun to wait that they wait again, and how many signals are kept."""
    for retry_run in plan.runs:
        run = stored.runs.get(retry_run.node_id)
        if run is None or run.more is None or run.state not in ENDED_BADLY:
            continue
        if run.more.kind == "approval":
            retry_run.reason = "asks for a decision again"
        elif run.more.kind == "signal":
            awaited = awaited_by(run)
            kept = sum(fits(awaited, signal) for signal in unused)
            names = " or ".join(awaited.names)
            retry_run.reason = f"waits again for {names}" + (f" ({kept} kept)" if kept else "")


def _changed_parent(plan: Plan, node: PlanNode, unchanged: set[str]) -> str | None:
    """The first parent of a node that isn't `unchanged`."""
    for parent in node.dependencies:
        parent_id = plan.nodes[parent].node_id
        if parent_id not in unchanged:
            return parent_id
    return None


def _untaken_branches(stored: Stored, old: Plan) -> dict[str, NodeRun]:
    """Nodes without a run that come before a node whose output was reused, as skipped runs.

    Their branch wasn't taken. A retry that ended early may not have decided them again.
    """
    skipped: dict[str, NodeRun] = {}
    ancestors: set[int] = set()
    """Nodes before one whose output was reused."""
    for number in reversed(old.order):
        node = old.nodes[number]
        run = stored.runs.get(node.node_id)
        is_ancestor = number in ancestors
        is_reused = run is not None and run.reason == Reason.REUSED
        never_began = run is None or (run.state in UNBEGUN and not run.attempt)

        if is_ancestor and never_began:
            skipped[node.node_id] = NodeRun(node.node_id, NodeState.SKIPPED, reason=NOT_TAKEN[0])
        if is_ancestor or is_reused:
            ancestors.update(node.dependencies)
    return skipped


def _reason(node: PlanNode, run: NodeRun | None, old: Plan, new: Plan) -> str | None:
    """Why a node runs, whatever comes before it."""
    if node.node_id not in old.numbers:
        return f"new in version {new.version}"
    if run is None or (run.state is NodeState.SKIPPED and run.reason not in NOT_TAKEN):
        return NEVER_RAN
    if run.state in ENDED_BADLY:
        return ENDED_BADLY[run.state]

    old_node = old.nodes[old.numbers[node.node_id]]
    if old is not new and _meaning(old, old_node) != _meaning(new, node):
        return f"changed in version {new.version}"
    return DECIDED_AGAIN if run.state is NodeState.SKIPPED else None


def _decides_alike(node: PlanNode) -> bool:
    """Whether the condition of a node decides the same way again.

    Not if it reads which execution this is, or may be decided before all parents have settled.
    """
    if node.condition is None:
        return True
    return "execution" not in node.condition.source and node.rule != "one_success"


def _meaning(plan: Plan, node: PlanNode) -> tuple[Any, ...]:
    """Everything in a node's definition that determines its outcome.

    The config is compared as JSON, because 1 and true are equal in Python.
    """
    config = msgspec.json.encode(node.config.value, order="deterministic")
    source = None
    if node.region is not None:
        config = _region_meaning(node.region)
        settings = (node.region.source, node.region.initial)
        values = [setting.value if setting else None for setting in settings]
        source = msgspec.json.encode(values, order="deterministic")
    parents = frozenset(plan.nodes[parent].node_id for parent in node.dependencies)
    return (
        node.handler,
        config,
        node.needs,
        parents,
        node.condition and node.condition.source,
        node.rule,
        tuple((plan.nodes[number].node_id, patterns) for number, patterns in node.catches),
        source,
    )
