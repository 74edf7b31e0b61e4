"""What commits leave behind: all that the next owner of an execution finds."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.definition.plan import Plan
from penstock.engine.commands import Commands, ExecutionRecord, NodeRun, Transition
from penstock.engine.events import Blob, SignalReceived, Value
from penstock.engine.reused_outputs import set_reused
from penstock.engine.state import Execution
from penstock.engine.states import (
    EXECUTION_TRANSITIONS,
    NODE_TRANSITIONS,
    ExecutionState,
    NodeState,
)
from penstock.engine.transitions import begin_generation

pack = msgspec.msgpack.encode


def unpack(data: bytes, kind: Any) -> Any:
    return msgspec.msgpack.decode(data, type=kind)


class Committed:
    def __init__(self, record: ExecutionRecord, reused: dict[str, Value] | None = None) -> None:
        self.record, self.reused = pack(record), reused or {}
        self.nodes: dict[str, bytes] = {}
        self.outputs: dict[str, bytes] = {}
        self.history: list[Transition] = []
        self.signals: list[bytes] = []
        self.folded: dict[str, str] = {}
        """The states recomputed from the history alone; the execution's own under an empty name."""
        self.timer: float | None = None

    def commit(self, commands: Commands) -> None:
        if commands.record is not None:
            self.record = pack(commands.record)
        self.nodes.update((address, pack(run)) for address, run in commands.nodes.items())
        for address in commands.dropped:
            self.outputs.pop(address, None)
        self.outputs.update((address, pack(value)) for address, value in commands.outputs.items())
        self.signals += map(pack, commands.signals)
        for line in commands.history:
            self._fold(line)
        if commands.timer_changed:
            self.timer = commands.wake_at

    def _fold(self, line: Transition) -> None:
        assert line.seq == len(self.history) + 1
        assert line.before == self.folded.get(line.node_id, "PENDING"), line
        if line.node_id:
            assert NodeState(line.after) in NODE_TRANSITIONS[NodeState(line.before)], line
        else:
            assert (
                ExecutionState(line.after) in EXECUTION_TRANSITIONS[ExecutionState(line.before)]
            ), line
        assert self.folded.get("") not in {"COMPLETED", "FAILED", "CANCELLED"}, (
            f"after the end: {line}"
        )
        self.history.append(line)
        self.folded[line.node_id] = line.after

    def load(self, plan: Plan) -> Execution:
        """As a new owner does: nothing is shared with the execution that wrote it."""
        runs: list[NodeRun] = [unpack(run, NodeRun) for run in self.nodes.values()]
        outputs: dict[str, Value] = {
            address: unpack(value, bytes | Blob) for address, value in self.outputs.items()
        }
        execution = Execution(
            plan,
            unpack(self.record, ExecutionRecord),
            runs,
            outputs,
            len(self.history),
            [unpack(signal, SignalReceived) for signal in self.signals],
        )
        if execution.record.reused or execution.record.state is ExecutionState.PENDING:
            set_reused(execution, self.reused)
        return execution

    def rebuild(self, generation: int, now: float) -> None:
        """As after a loss of the hot store whose checkpoint was this."""
        runs: list[NodeRun] = [unpack(run, NodeRun) for run in self.nodes.values()]
        record: ExecutionRecord = unpack(self.record, ExecutionRecord)
        for line in begin_generation(record, runs, len(self.history), generation, now):
            self._fold(line)
        self.record = pack(record)
        self.nodes = {run.node_id: pack(run) for run in runs}
        self.timer = None

    def assert_equals(self, execution: Execution) -> None:
        """What isn't committed is lost with its owner."""
        assert self.record == pack(execution.record)
        assert self.nodes == {address: pack(run) for address, run in execution.runs.items()}
        assert self.outputs == {
            address: pack(value) for address, value in execution.outputs.items()
        }
        assert self.signals == list(map(pack, execution.mailbox.signals.values()))
        assert self.folded.get("", "PENDING") == execution.record.state
        states = {address: run.state for address, run in execution.runs.items()}
        assert {node: state for node, state in self.folded.items() if node} == states
        assert execution.last_seq == len(self.history)
        unrecorded = bool(execution.record.reused)
        assert execution.record.state is ExecutionState.PENDING or unrecorded == bool(
            execution.reused or execution.kept_items
        )
