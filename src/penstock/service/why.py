"""Why a node isn't running now: the exact reason, from the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from penstock.definition.addresses import Step, body_at, steps_to
from penstock.definition.moments import moment_text
from penstock.definition.plan import PlanNode, RegionPlan
from penstock.definition.waits import approval_config
from penstock.engine.commands import More, NodeRun
from penstock.engine.loops import pause_seconds
from penstock.engine.reasons import reason_text
from penstock.engine.states import EXECUTION_ENDS, NODE_ENDS, ExecutionState, NodeState
from penstock.engine.waiting import awaited_by
from penstock.errors import NotFound
from penstock.service.executions import Executions
from penstock.service.nodes import find_node
from penstock.service.waiting import QueuePlace
from penstock.stores.base import Stored, Stores
from penstock.views.why import WaitsFor, Why, WhyReason

NAMED_MAX = 5
"""How many open items a text names."""


class Explanations:
    """Says why nodes aren't running."""

    def __init__(self, stores: Stores, executions: Executions) -> None:
        self._stores = stores
        self._executions = executions

    async def why(self, execution_id: str, node_id: str) -> Why:
        """Why a node isn't running now. Raises `NotFound`."""
        stored = await self._executions.stored(execution_id)
        plan = await self._executions.plan(stored.record)
        node, parents = find_node(plan, node_id)
        run = stored.runs.get(node_id)
        if run is None and stored.record.state not in EXECUTION_ENDS:
            unopened = _of_unopened(stored, node, steps_to(plan, node_id))
            if unopened is not None:
                return structs.replace(unopened, node_id=node_id)
            if node_id not in plan.numbers and body_at(plan, node_id) is None:
                return _of_open_item(stored, node, node_id)
        if run is not None and run.state is NodeState.QUEUED:
            waits = await self._executions.waiting.of_nodes(stored.record, stored.runs, plan)
            return await self._of_queued(stored, node, run, waits.get(node_id))
        if run is None and stored.record.state is ExecutionState.PENDING:
            intent = await self._stores.cold.executions.intent(execution_id)
            if intent is not None and intent.waits:
                text = "the execution waits to be triggered"
                return _why(stored, node, run, "not_triggered", text)
            return _why(stored, node, run, "not_begun", "the execution is about to begin")
        return _of_records(stored, node, run, parents)

    async def _of_queued(
        self, stored: Stored, node: PlanNode, run: NodeRun, wait: tuple[str, str] | None
    ) -> Why:
        if stored.record.state is ExecutionState.PAUSED:
            text = "the execution is paused; the task is handed out when it is resumed"
            return _why(stored, node, run, "paused", text)
        if wait is not None:
            reason: WhyReason = "no_handler" if wait[0] == "no_handler" else "no_worker"
            return _why(stored, node, run, reason, wait[1], queue=node.queue)
        place = await self._executions.waiting.place(stored.record, run, node)
        backlogs = await self._executions.waiting.backlogs()
        waiting = sum(backlog.waiting for backlog in backlogs if backlog.queue == place.queue)
        about: dict[str, Any] = {"queue": place.queue, "tasks_waiting": max(waiting, 1)}
        if place.ahead is not None and place.ahead.is_exact:
            about["position"] = place.ahead.count + 1
        return _why(stored, node, run, "queued", _queued_text(place), **about)


def _queued_text(place: QueuePlace) -> str:
    if place.ahead is None:
        return f"it waits for a free worker of the queue {place.queue!r}"
    count = place.ahead.count
    tasks = f"{count:,} tasks are"
    if not place.ahead.is_exact:
        tasks = f"at least {tasks}"
    elif count == 1:
        tasks = "1 task is"
    elif count == 0:
        return f"it waits for a free worker; it is the next one in the queue {place.queue!r}"
    return f"it waits for a free worker; {tasks} ahead of it in the queue {place.queue!r}"


def _of_unopened(stored: Stored, node: PlanNode, steps: Sequence[Step]) -> Why | None:
    """Of a node inside of an item or a round that hasn't begun: what that waits for."""
    for step in steps:
        run = stored.runs.get(step.address)
        more = None if run is None else run.more
        if run is None or more is None:
            waits_for = [WaitsFor(node_id=step.address, state=str(NodeState.PENDING))]
            text = f"it waits for {step.address}, which hasn't begun"
            return _why(stored, node, None, "dependencies", text, waits_for=waits_for)
        index = step.item_index - (0 if step.region.each else 1)
        if run.state in NODE_ENDS:
            item = f"{step.address}[{step.item_index}]"
            if item not in stored.runs:
                text = f"{step.address} is {run.state}; {item} never began"
                return _why(stored, node, None, "ended", text)
        elif step.region.each is not None and index >= more.opened:
            return _of_unopened_item(stored, node, step, more)
        elif index >= more.opened:
            return _of_unopened_round(stored, node, step, run, more)
    return None


def _of_open_item(stored: Stored, node: PlanNode, address: str) -> Why:
    """Of an item or a round itself: its nodes that haven't ended."""
    inside = f"{address}."
    under_way = [
        WaitsFor(node_id=run.node_id, state=str(run.state))
        for run in stored.runs.values()
        if run.node_id.startswith(inside) and run.state not in NODE_ENDS
    ][:NAMED_MAX]
    names = ", ".join(f"{item.node_id} ({item.state})" for item in under_way)
    text = f"it is under way: {names}" if names else "it is about to begin"
    why = _why(stored, node, None, "items", text, waits_for=under_way)
    return structs.replace(why, node_id=address)


def _of_unopened_item(stored: Stored, node: PlanNode, step: Step, more: More) -> Why:
    item = f"{step.address}[{step.item_index}]"
    if step.item_index >= more.size:
        raise NotFound(f"{step.address} has {more.size:,} items; there is no {item}")
    limit = step.region.each.max_parallel if step.region.each else 0
    text = (
        f"{more.opened:,} of {more.size:,} items of {step.address} have begun, and at most"
        f" {limit:,} are open at once (max_parallel); {item} begins when others have ended"
    )
    if stored.record.state is ExecutionState.PAUSED:
        text = f"the execution is paused; {item} begins when it is resumed"
        return _why(stored, node, None, "paused", text)
    return _why(stored, node, None, "item_limit", text)


def _of_unopened_round(stored: Stored, node: PlanNode, step: Step, run: NodeRun, more: More) -> Why:
    before = f"{step.address}[{more.opened}]"
    waiting = _of_loop(stored, node, run, step.region)
    if waiting.reason == "time":
        return waiting
    text = f"its round hasn't begun; {before} is under way"
    waits_for = [WaitsFor(node_id=before, state=str(NodeState.RUNNING))]
    return _why(stored, node, None, "dependencies", text, waits_for=waits_for)


def _of_map(stored: Stored, node: PlanNode, run: NodeRun, more: More) -> Why:
    """Of a map that is under way."""
    ended = 0
    still_open: list[str] = []
    for index in range(more.opened):
        item = f"{run.node_id}[{index}]"
        item_run = stored.runs.get(item)
        if item_run is not None and item_run.state in NODE_ENDS:
            ended += 1
        elif len(still_open) < NAMED_MAX:
            still_open.append(item)
    is_open = more.opened - ended
    names = ", ".join([*still_open, "…"] if is_open > len(still_open) else still_open)
    text = f"{ended:,} of {more.size:,} items have ended; {is_open:,} are open: {names}"
    return _why(stored, node, run, "items", text)


def _of_loop(stored: Stored, node: PlanNode, run: NodeRun, region: RegionPlan) -> Why:
    """Of a loop that is under way: its round, or the pause before the next one."""
    opened = 0 if run.more is None else run.more.opened
    name = f"{run.node_id}[{opened}]"
    last = stored.runs.get(name)
    if last is None or last.state not in NODE_ENDS or region.repeat is None:
        text = f"round {opened} is under way: {name}"
        return _why(stored, node, run, "items", text)
    due_at = (last.finished_at or 0.0) + pause_seconds(region.repeat, opened)
    until = moment_text(due_at)
    text = f"round {opened} has ended; the next begins at {until}"
    return _why(stored, node, run, "time", text, until=until)


def _of_records(stored: Stored, node: PlanNode, run: NodeRun | None, parents: list[str]) -> Why:
    state = stored.record.state
    if run is None:
        if state in EXECUTION_ENDS:
            return _why(stored, node, run, "ended", f"the execution is {state}")
        return _of_pending(stored, node, parents)
    if run.state in NODE_ENDS:
        reason = reason_text(run.reason)
        text = f"it has ended: {reason}" if reason else "it has ended"
        return _why(stored, node, run, "ended", text)
    if run.state is NodeState.RUNNING:
        text = f"it runs on {run.worker_id or 'a worker'}, attempt {run.attempt}"
        return _why(stored, node, run, "running", text)
    if run.state is NodeState.RETRYING:
        return _of_retrying(stored, node, run)
    return _of_waiting(stored, node, run)


def _of_pending(stored: Stored, node: PlanNode, parents: list[str]) -> Why:
    unsettled: list[WaitsFor] = []
    for parent_id in parents:
        run = stored.runs.get(parent_id)
        state = NodeState.PENDING if run is None else run.state
        if state not in NODE_ENDS:
            unsettled.append(WaitsFor(node_id=parent_id, state=str(state)))
    if unsettled:
        shown = ", ".join(f"{parent.node_id} ({parent.state})" for parent in unsettled)
        return _why(
            stored, node, None, "dependencies", f"it waits for {shown}", waits_for=unsettled
        )
    if stored.record.state is ExecutionState.PAUSED:
        text = "the execution is paused; it starts when that is resumed"
        return _why(stored, node, None, "paused", text)
    text = "nothing is missing: its condition and config are being evaluated"
    return _why(stored, node, None, "starting", text)


def _of_retrying(stored: Stored, node: PlanNode, run: NodeRun) -> Why:
    error = run.failures[-1].error.message if run.failures else "the last one failed"
    until = None if run.due_at is None else moment_text(run.due_at)
    when = "now" if until is None else f"at {until}"
    text = f"attempt {run.attempt + 1} of {node.retry.max_attempts} starts {when}; {error}"
    if stored.record.state is ExecutionState.PAUSED:
        text += " (the execution is paused)"
    return _why(stored, node, run, "retry", text, until=until)


def _of_waiting(stored: Stored, node: PlanNode, run: NodeRun) -> Why:
    until = None if run.due_at is None else moment_text(run.due_at)
    end = "" if until is None else f", until {until}"
    more = run.more
    if node.region is not None and more is not None:
        if node.region.repeat is not None:
            return _of_loop(stored, node, run, node.region)
        return _of_map(stored, node, run, more)
    if more is None or more.config is None or more.kind == "wait":
        return _why(stored, node, run, "time", f"it waits{end}", until=until)
    if more.kind == "approval":
        approval = approval_config(msgspec.json.decode(more.config))
        text = f"it waits for a decision ({approval.title!r}){end}"
        if approval.needed > 1:
            text += f"; {len(more.signals)} of {approval.needed} have approved"
        return _why(stored, node, run, "approval", text, until=until)
    if more.child is not None:
        text = f"it waits for its child {more.child}{end}"
        return _why(stored, node, run, "child", text, until=until)
    awaited = awaited_by(run)
    names = list(awaited.names)
    text = f"it waits for the signal {' or '.join(names)}"
    if awaited.correlation is not None:
        text += f" with the correlation {awaited.correlation!r}"
    if awaited.count:
        text += f"; {len(more.signals)} of {awaited.count} came"
    return _why(stored, node, run, "signal", text + end, until=until, names=names)


def _why(
    stored: Stored,
    node: PlanNode,
    run: NodeRun | None,
    reason: WhyReason,
    text: str,
    **about: Any,
) -> Why:
    state = NodeState.PENDING if run is None else run.state
    return Why(
        execution_id=stored.record.execution_id,
        node_id=node.node_id,
        state=str(state),
        reason=reason,
        text=text,
        **about,
    )
