"""Nodes that wait: for a time, or for a signal. The owner waits, and no worker has a task.

A node begins to wait when it would otherwise be dispatched: PENDING → WAITING. Its record then has
its config, filled in, and the deadline that ends the wait. So the next owner knows both without
looking anything up. Time runs on while the execution is paused: the outcome is recorded then, and
what follows starts when it is resumed.

Signals that were received are part of the execution (`mailbox`), taken or not. A signal
is taken by the node whose record names its number, so no second list says which are left over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.definition.moments import moment_text
from penstock.definition.schema import cheap_problems, schema_problems
from penstock.definition.waits import (
    BadWait,
    SignalConfig,
    approval_config,
    check_schema,
    decision_name,
    moment_of,
    signal_config,
)
from penstock.engine import deadlines
from penstock.engine.commands import More, NodeRun
from penstock.engine.events import Blob, SignalReceived, TaskError, Value
from penstock.engine.failing import fail_node
from penstock.engine.reasons import ErrorCategory
from penstock.engine.settling import complete
from penstock.engine.states import NodeState
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution

DECISION_SECONDS = 1.0
"""How much later an approval expires than it says."""
CONFIG_BYTES_MAX = 256 * 1024
"""A larger config isn't waited with: it is part of the node's record."""


def begin(execution: Execution, number: int, run: NodeRun, config: Value) -> None:
    """Let a node wait, with its config filled in; what can't be waited for fails the node."""
    handler = execution.node(number).handler
    if isinstance(config, Blob) or len(config) > CONFIG_BYTES_MAX:
        message = f"its config has more than {CONFIG_BYTES_MAX:,} bytes; refer to less"
        fail_node(execution, number, run, TaskError(ErrorCategory.CONFIG, message))
        return
    try:
        _BEGIN[handler](execution, number, run, config)
    except BadWait as error:
        fail_node(execution, number, run, TaskError(ErrorCategory.CONFIG, str(error)))


def _begin_time(execution: Execution, number: int, run: NodeRun, config: bytes) -> None:
    until = moment_of(msgspec.json.decode(config), execution.now)
    if until <= execution.now:
        complete(execution, number, run, _time_output(until, 0.0))
        return
    _wait(execution, run, config, until, f"until {moment_text(until)}")


def _begin_signal(execution: Execution, number: int, run: NodeRun, config: bytes) -> None:
    awaited = signal_config(msgspec.json.decode(config))
    check_schema("schema", awaited.schema)
    text = f"for {' or '.join(awaited.names)}"
    until = None
    if awaited.timeout_seconds is not None:
        until = execution.now + awaited.timeout_seconds
        text += f", until {moment_text(until)}"
    _wait(execution, run, config, until, text)
    if run.more is not None:
        run.more.key = awaited.correlation
    listen(execution, number, run)
    _take_free(execution, number, run)


def _begin_approval(execution: Execution, number: int, run: NodeRun, config: bytes) -> None:
    approval = approval_config(msgspec.json.decode(config))
    check_schema("form", approval.form)
    text = "for a decision"
    until = None
    if approval.expires_seconds is not None:
        until = execution.now + approval.expires_seconds
        text += f", until {moment_text(until)}"
        # a decision that was stored in time counts, also if its event comes a moment later
        until += DECISION_SECONDS
    _wait(execution, run, config, until, text)
    listen(execution, number, run)
    _take_free(execution, number, run)


def _take_free(execution: Execution, number: int, run: NodeRun) -> None:
    """Take signals that came before the node waited."""
    awaited = awaited_by(run)
    for signal in execution.mailbox.free(awaited.names):
        if run.state is not NodeState.WAITING:
            return
        if fits(awaited, signal):
            take(execution, number, run, signal, awaited)


_BEGIN: dict[str, Callable[[Execution, int, NodeRun, bytes], None]] = {
    "wait": _begin_time,
    "signal": _begin_signal,
    "approval": _begin_approval,
}


def _wait(
    execution: Execution, run: NodeRun, config: bytes, until: float | None, text: str
) -> None:
    """PENDING → WAITING, with the earlier of the wait's own end and the node's time limit."""
    run.attempt += 1
    run.started_at = execution.now
    run.due_at = until
    handler = execution.node_of(run).handler
    due_kind = None if until is None else "wait"
    run.more = run.more or More()
    run.more.config = config
    run.more.due_kind = due_kind
    run.more.kind = handler
    limit_seconds = execution.node_of(run).timeout_seconds
    if limit_seconds and (until is None or execution.now + limit_seconds < until):
        run.due_at = execution.now + limit_seconds
        run.more.due_kind = "limit"
    move_node(execution, run, NodeState.WAITING, text)
    deadlines.arm_waiting(execution, run)


def is_expiring(execution: Execution, now: float) -> bool:
    """Whether a node has waited for a signal or a decision for as long as it may."""
    for _, number, _, kind in deadlines.due(execution, now):
        if kind not in ("wait", "limit") or not execution.has_number(number):
            continue
        node = execution.node(number)
        run = execution.runs.get(node.node_id)
        is_waiting = run is not None and run.state is NodeState.WAITING
        if is_waiting and node.handler != "wait" and node.child is None:
            return True
    return False


def wait_is_over(execution: Execution, number: int, run: NodeRun) -> bool:
    """The time that a node waits for, or the longest that it waits for somebody, has come."""
    if run.state is not NodeState.WAITING or run.more is None or run.more.config is None:
        return False
    if execution.node(number).handler == "wait":
        now = execution.now
        waited_seconds = 0.0 if run.started_at is None else now - run.started_at
        until = now if run.due_at is None else run.due_at
        complete(execution, number, run, _time_output(until, waited_seconds))
    elif run.more.kind == "approval":
        _expire(execution, number, run)
    else:
        _end_without_signal(execution, number, run, run.more)
    return True


def _end_without_signal(execution: Execution, number: int, run: NodeRun, more: More) -> None:
    """No signal, or too few of them, came in time."""
    awaited = awaited_by(run)
    if awaited.on_timeout == "fail":
        names = " or ".join(awaited.names)
        message = f"no signal {names} came within {awaited.timeout_seconds:g} s"
        fail_node(execution, number, run, TaskError(ErrorCategory.TIMEOUT, message))
        return
    output: dict[str, Any] = {"timed_out": True}
    if awaited.count:
        output["signals"] = _taken(execution, more)
    complete(execution, number, run, msgspec.json.encode(output), "timed out")


def limit_reached(execution: Execution, number: int, run: NodeRun) -> bool:
    """The node's own `timeout_seconds` are over."""
    if run.state is not NodeState.WAITING:
        return False
    seconds = execution.node(number).timeout_seconds
    message = f"it has waited for {seconds:g} s, its timeout_seconds"
    fail_node(execution, number, run, TaskError(ErrorCategory.TIMEOUT, message))
    return True


def _time_output(until: float, waited_seconds: float) -> bytes:
    seconds = round(waited_seconds, 3)
    return msgspec.json.encode({"until": moment_text(until), "waited_seconds": seconds})


def awaited_by(run: NodeRun) -> SignalConfig:
    """What a node that waits for signals or for decisions waits for."""
    if run.more is None or run.more.config is None:
        raise ValueError(f"node {run.node_id!r} waits for nothing")
    if run.more.kind == "approval":
        return SignalConfig(names=(decision_name(run.node_id, run.attempt),))
    return signal_config(msgspec.json.decode(run.more.config))


def listen(execution: Execution, number: int, run: NodeRun) -> None:
    """Let a node that waits for signals be found when one comes."""
    awaited = awaited_by(run)
    since = run.started_at or 0.0
    execution.mailbox.listen(awaited.names, awaited.correlation, since, number)


def fits(awaited: SignalConfig, signal: SignalReceived) -> bool:
    """Whether a node that waits for this may take the signal.

    A correlation keeps a signal from nodes that wait for another one.
    """
    if signal.name not in awaited.names:
        return False
    is_other = awaited.correlation is not None and signal.correlation is not None
    if is_other and awaited.correlation != signal.correlation:
        return False
    if awaited.schema is None:
        return True
    payload = msgspec.json.decode(signal.payload)
    problems = cheap_problems(awaited.schema, payload)
    if problems is None:
        problems = schema_problems(awaited.schema, payload)
    return not problems


def take(
    execution: Execution, number: int, run: NodeRun, signal: SignalReceived, awaited: SignalConfig
) -> None:
    """Give a signal to a node that waits for it; the last one that it needs completes it."""
    more = run.more
    if run.state is not NodeState.WAITING or more is None:
        return
    execution.mailbox.take(signal)
    if more.kind == "approval":
        _decide(execution, number, run, signal)
        return
    reason = f"signal {signal.number}"
    if signal.sender:
        reason += f" from {signal.sender}"
    if not awaited.count:
        more.signal = signal.number
        complete(execution, number, run, msgspec.json.encode(_shown(signal)), reason)
        return
    more.signals = (*more.signals, signal.number)
    execution.commands.nodes[run.node_id] = run
    if len(more.signals) >= awaited.count:
        complete(execution, number, run, msgspec.json.encode(_taken(execution, more)), reason)


def _decide(execution: Execution, number: int, run: NodeRun, signal: SignalReceived) -> None:
    """Count a decision: a rejection ends the wait, and as many approvals as are needed."""
    more = run.more
    if more is None or more.config is None:
        return
    more.signals = (*more.signals, signal.number)
    execution.commands.nodes[run.node_id] = run
    decisions = [_decision(execution.mailbox.signals[number]) for number in more.signals]
    approval = approval_config(msgspec.json.decode(more.config))
    last = decisions[-1]
    if last["decision"] == "rejected":
        if approval.on_reject == "fail":
            message = f"rejected by {last['by'] or 'somebody'}"
            if last["comment"]:
                message += f": {last['comment']}"
            fail_node(execution, number, run, TaskError(ErrorCategory.REJECTED, message))
            return
    elif sum(item["decision"] == "approved" for item in decisions) < approval.needed:
        return
    _end_approval(execution, number, run, last, decisions)


def _expire(execution: Execution, number: int, run: NodeRun) -> None:
    """Nobody has decided in time, or too few."""
    more = run.more
    if more is None or more.config is None:
        return
    approval = approval_config(msgspec.json.decode(more.config))
    is_rejected = approval.on_expire == "reject"
    if approval.on_expire == "fail" or (is_rejected and approval.on_reject == "fail"):
        message = f"nobody decided within {approval.expires_seconds:g} s"
        fail_node(execution, number, run, TaskError(ErrorCategory.EXPIRED, message))
        return
    decisions = [_decision(execution.mailbox.signals[number]) for number in more.signals]
    expired = {
        "decision": "expired",
        "by": "",
        "comment": None,
        "form": None,
        "at": moment_text(execution.now),
        "approved": not is_rejected,
    }
    _end_approval(execution, number, run, expired, decisions)


def _end_approval(
    execution: Execution,
    number: int,
    run: NodeRun,
    last: dict[str, Any],
    decisions: list[dict[str, Any]],
) -> None:
    approved = last.get("approved", last["decision"] == "approved")
    output = {**last, "approved": approved, "decisions": decisions}
    reason = str(last["decision"])
    if last["by"]:
        reason += f" by {last['by']}"
    complete(execution, number, run, msgspec.json.encode(output), reason)


def _decision(signal: SignalReceived) -> dict[str, Any]:
    payload = msgspec.json.decode(signal.payload)
    return {
        "decision": payload["decision"],
        "by": signal.sender,
        "comment": payload.get("comment"),
        "form": payload.get("form"),
        "at": moment_text(signal.at),
    }


def _taken(execution: Execution, more: More) -> list[dict[str, Any]]:
    return [_shown(execution.mailbox.signals[number]) for number in more.signals]


def _shown(signal: SignalReceived) -> dict[str, Any]:
    return {
        "name": signal.name,
        "payload": msgspec.Raw(signal.payload),
        "from": signal.sender,
        "at": moment_text(signal.at),
        "number": signal.number,
    }
