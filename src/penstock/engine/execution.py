"""One run of one version: its state in memory, and what each event does to it.

The fields that are stored are `record`, `runs` (a record per node that has left PENDING) and
`outputs`. Everything else (how many parents of each node are unsettled, which nodes are ready,
which deadlines lie ahead) is derived from these when an execution is loaded, so it can't disagree
with them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappush
from itertools import chain
from typing import Any

from penstock.definition.plan import Plan, PlanNode
from penstock.engine import deadlines, derived, ending, failures, losses, reused_outputs
from penstock.engine import events as ev
from penstock.engine.commands import (
    RETURNED,
    Commands,
    DeadLetter,
    ExecutionRecord,
    NodeRun,
    Transition,
)
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.preparing import Preparation, Prepared
from penstock.engine.readiness import CLEANUP_RULES, UPSTREAM_FAILED, Outcome, Tally, Verdict
from penstock.engine.retry import delay_seconds
from penstock.engine.start import start
from penstock.engine.states import (
    EXECUTION_ENDS,
    NODE_ENDS,
    NODE_TRANSITIONS,
    ExecutionState,
    NodeState,
    check_execution,
    check_node,
)

PENDING, QUEUED, RUNNING, RETRYING = (
    NodeState.PENDING,
    NodeState.QUEUED,
    NodeState.RUNNING,
    NodeState.RETRYING,
)
COMPLETED, FAILED, SKIPPED, CANCELLED = (
    NodeState.COMPLETED,
    NodeState.FAILED,
    NodeState.SKIPPED,
    NodeState.CANCELLED,
)

_NOTHING = Commands("")
"""Stands where no event has been handled since the last commit."""
COMMIT_WEIGHT = 1000
"""History lines, tasks or KiB after which the rest of the ready nodes waits for the next commit."""
BACKSTOP_SECONDS = 10.0
"""The worker stops an attempt at its timeout; this much later the owner does, in case the worker
didn't.
"""

INLINE_BYTES_MAX = 256 * 1024
"""How much one event may have decoded and converted in the decision itself; what is left over is
prepared elsewhere.

That is 20 ms of the loop for the dearest of JSON.
"""
PREPARE_AGAIN_SECONDS = 5.0
"""While a node's preparation is under way a timer is set: if its owner dies, the next one has it
prepared again.
"""


class Execution:
    __slots__ = (
        "_readied",
        "_returned",
        "blocked",
        "commands",
        "considered",
        "deadlines",
        "deferred",
        "inline_bytes",
        "last_seq",
        "loaded",
        "nodes",
        "now",
        "numbers",
        "open",
        "outputs",
        "plan",
        "prepared",
        "ready",
        "record",
        "reused",
        "runs",
        "tally",
        "unprepared",
        "values",
        "waiting",
        "wake_at",
        "wanted",
    )

    def __init__(
        self,
        plan: Plan,
        record: ExecutionRecord,
        runs: Iterable[NodeRun] = (),
        outputs: dict[str, Value] | None = None,
        last_seq: int = 0,
    ) -> None:
        self.plan, self.record, self.last_seq = plan, record, last_seq
        self.nodes: list[PlanNode] = plan.nodes
        self.numbers: dict[str, int] = plan.numbers
        self.runs: dict[str, NodeRun] = {}
        self.outputs: dict[str, Value] = outputs or {}
        self.now = 0.0
        self.open = len(plan.nodes)
        self.ready: deque[int] = deque()
        self.tally = Tally(plan)
        self.deadlines: list[deadlines.Deadline] = []
        self.wake_at: float | None = None
        self.loaded: dict[str, bytes] = {}
        self.values: dict[str, Any] = {}
        self.wanted: dict[str, Blob] = {}
        self.blocked: list[int] = []
        self.unprepared: dict[str, Preparation] = {}
        """By node, what has to be worked out elsewhere before it can start; `take_unprepared` has
        it done.
        """
        self.waiting: set[int] = set()
        """Nodes whose preparation is under way."""
        self.prepared: dict[str, Prepared] = {}
        self.inline_bytes = INLINE_BYTES_MAX
        """How much may still be decoded in the decision on this event."""
        self.considered: deque[int] = deque()
        self.deferred: list[deadlines.Deadline] = []
        self.reused: list[tuple[int, Value]] = []
        self._readied: set[int] = set()
        self._returned: set[tuple[str, int, str]] = set()
        self.commands = _NOTHING
        if record.added:
            derived.append_nodes(self, record.added)
        if record.state != ExecutionState.PENDING:
            derived.restore(self, runs)

    def handle(self, event: ev.AnyEvent, now: float) -> Commands:
        """Let `event` have its effect. Events that come too late change nothing."""
        if self.commands is _NOTHING:
            self.commands = Commands(self.record.execution_id)
        commands = self.commands
        if self.record.state in EXECUTION_ENDS:
            return commands
        self.now = now
        self.inline_bytes = INLINE_BYTES_MAX
        commands.more = False
        _HANDLERS[type(event)](self, event)
        self._drain()
        return commands

    def take_commands(self) -> Commands:
        """Everything collected since the last time, for one commit."""
        commands, self.commands = self.commands, _NOTHING
        return commands

    def provide(self, values: Mapping[str, bytes]) -> None:
        """Outputs that were `wanted`; handle `Continued` next."""
        self.loaded.update(values)
        self.wanted.clear()
        self.ready.extendleft(reversed(self.blocked))
        self.blocked.clear()

    def take_unprepared(self) -> dict[str, Preparation]:
        """What is to be worked out, once; until it is there, the node waits."""
        taken, self.unprepared = self.unprepared, {}
        return taken

    def provide_prepared(self, prepared: Mapping[str, Prepared]) -> None:
        """What was worked out, by node; handle `Continued` next.

        It is dropped if the node has ended meanwhile.
        """
        for address, result in prepared.items():
            number = self.numbers[address]
            self.prepared[address] = result
            if number in self.waiting:
                self.waiting.discard(number)
                self.ready.append(number)

    def _on_started(self, _event: ev.ExecutionStarted) -> None:
        if self.record.state != ExecutionState.PENDING:
            return
        self.record.started_at = self.now
        self.move_execution(ExecutionState.RUNNING)
        self.arm_execution()
        for number in self.plan.roots:
            self._make_ready(number)
        self.considered.extend(range(len(self.plan.nodes), len(self.nodes)))

    def _on_task_started(self, event: ev.TaskStarted) -> None:
        run = self._current(event)
        if run is not None and run.state is QUEUED:
            self._mark_running(run, event.started_at, event.worker_id)

    def _on_task_succeeded(self, event: ev.TaskSucceeded) -> None:
        run = self._current(event)
        if run is None:
            return
        if run.state is QUEUED:
            self._mark_running(run, event.started_at, event.worker_id, arm=False)
        if event.logs:
            failures.record_logs(self, run, event.logs, is_last=True)
        self.complete(self.numbers[event.node], run, event.output)

    def _on_task_failed(self, event: ev.TaskFailed) -> None:
        run = self._current(event)
        if run is None:
            return
        if run.state is QUEUED and event.worker_id:
            self._mark_running(run, event.started_at, event.worker_id, arm=False)
        if event.logs:
            is_last = self._is_last(run, retryable=event.retryable)
            failures.record_logs(self, run, event.logs, is_last=is_last)
        self.attempt_failed(run, event.error, retryable=event.retryable, asked=event.retry_after)

    def _on_task_lost(self, event: ev.TaskLost) -> None:
        run = self._current(event)
        if run is not None:
            error = losses.record_loss(run, event, self.node_of(run).retry.max_attempts)
            self.attempt_failed(run, error, retryable=True, asked=0.0)

    def _on_task_returned(self, event: ev.TaskReturned) -> None:
        run = self._current(event)
        key = (event.node, event.attempt, event.worker_id)
        if run is None or run.state is not QUEUED or key in self._returned:
            return
        self._returned.add(
            key
        )  # in memory only: the same message again has no effect, a new loss of the queue has
        run.reason = RETURNED
        self.commands.nodes[run.address] = run
        self.ready.append(self.numbers[event.node])

    def _on_timer(self, _event: ev.TimerFired) -> None:
        self.wake_at = None
        self.commands.timer_changed, self.commands.wake_at = True, None
        deadlines.fire(self)

    def _on_cancel(self, event: ev.CancelRequested) -> None:
        ending.stop_everything(self, event.reason, pending=CANCELLED)
        ending.finish(self, ExecutionState.CANCELLED, event.reason)

    def _on_pause(self, _event: ev.PauseRequested) -> None:
        if self.record.state == ExecutionState.RUNNING:
            self.record.paused_at = self.now
            self.move_execution(ExecutionState.PAUSED)
            self.commands.paused = True

    def _on_resume(self, _event: ev.ResumeRequested) -> None:
        if self.record.state == ExecutionState.PAUSED:
            self.move_execution(ExecutionState.RUNNING)
            self.commands.paused = False
            deadlines.resume(self, self.record.paused_at or self.now)

    def _on_continued(self, _event: ev.Continued) -> None:
        """Nothing happened; there is more to do."""

    def _on_broke(self, event: ev.ExecutionBroke) -> None:
        ending.blame(self, TaskError("internal_error", event.message))
        ending.stop_everything(self, "internal_error")
        ending.finish(self, ExecutionState.FAILED)

    def _on_nodes_added(self, event: ev.NodesAdded) -> None:
        unknown = {node.address: node for node in event.nodes if node.address not in self.numbers}
        fresh = list(unknown.values())
        self.record.added = [*self.record.added, *fresh]
        self.commands.record = self.record
        numbers = derived.append_nodes(self, fresh)
        if self.record.state != ExecutionState.PENDING:
            self.considered.extend(numbers)

    def _current(self, event: ev.TaskEvent) -> NodeRun | None:
        """The node's record, if the event speaks of its current attempt and that hasn't ended."""
        run = self.runs.get(event.node)
        if (
            run is None
            or event.attempt != run.attempt
            or event.generation != self.record.generation
            or (run.state is not QUEUED and run.state is not RUNNING)
        ):
            return None
        return run

    def move(
        self, run: NodeRun, state: NodeState, reason: str | None = None, at: float | None = None
    ) -> None:
        """The only way a node's state changes: by the table, with a history line."""
        address, before = run.address, run.state
        if state not in NODE_TRANSITIONS[before]:
            check_node(address, before, state)
        commands = self.commands
        self.last_seq = seq = self.last_seq + 1
        when = self.now if at is None else at
        commands.history.append(Transition(seq, when, address, before, state, run.attempt, reason))
        commands.nodes[address] = run
        run.state, run.reason = state, reason
        if state in NODE_ENDS:
            run.finished_at = when
            self.open -= 1

    def open_run(self, number: int) -> NodeRun:
        """The record of a node that leaves PENDING."""
        address = self.nodes[number].address
        run = self.runs[address] = NodeRun(address, PENDING)
        return run

    def complete(self, number: int, run: NodeRun, output: Value, reason: str | None = None) -> None:
        self.outputs[run.address] = self.commands.outputs[run.address] = output
        self.commands.size += len(output) if type(output) is bytes else 0
        self.move(run, COMPLETED, reason)
        self.settle(number, Outcome.SUCCESS)

    def skip(self, number: int, reason: str) -> None:
        self.move(self.open_run(number), SKIPPED, reason)
        self.settle(number, Outcome.FAILURE if reason == UPSTREAM_FAILED else Outcome.SKIP)

    def fail(
        self, number: int, run: NodeRun, error: TaskError, *, dead_letter: bool = True
    ) -> None:
        """The node has no more attempts."""
        node = self.nodes[number]
        error = failures.cut(error)
        failures.note(self, run, error, is_last=True)
        self.move(run, FAILED, error.category)
        if dead_letter:
            letter = DeadLetter(
                self.record.execution_id,
                node.address,
                node.handler,
                self.now,
                run.failures,
                run.failures_dropped,
            )
            self.commands.dead_letters.append(letter)
        self.settle(number, Outcome.SUCCESS if node.optional else Outcome.FAILURE)
        if not node.optional:
            ending.fail(self, error, node.address)

    def _mark_running(
        self, run: NodeRun, started_at: float, worker_id: str, *, arm: bool = True
    ) -> None:
        # the worker's clock may differ from ours: a start is never before the dispatch or after the
        # outcome
        run.started_at = min(max(started_at, run.queued_at or 0.0), self.now)
        run.worker_id = worker_id
        self.move(run, RUNNING, at=run.started_at)
        if arm:
            self.arm_backstop(run)

    def _is_last(self, run: NodeRun, *, retryable: bool) -> bool:
        """Whether a node whose current attempt fails has no more of them."""
        return not retryable or losses.attempts_used(run) >= self.node_of(run).retry.max_attempts

    def attempt_failed(
        self, run: NodeRun, error: TaskError, *, retryable: bool, asked: float | None
    ) -> None:
        number = self.numbers[run.address]
        retry = self.nodes[number].retry
        if self._is_last(run, retryable=retryable):
            self.fail(number, run, error)
            return
        failures.note(self, run, error, is_last=False)
        seed = f"{self.record.execution_id}:{run.address}"
        delay = delay_seconds(retry, run.attempt, seed, asked=asked)
        run.due_at = self.now + delay
        self.move(run, RETRYING, error.category)
        if delay:
            self.arm(run.due_at, run, "retry")
        else:
            self.ready.append(number)

    def node_of(self, run: NodeRun) -> PlanNode:
        return self.nodes[self.numbers[run.address]]

    def settle(self, number: int, outcome: Outcome) -> None:
        self.considered.extend(self.tally.settle(self.nodes[number], number, outcome, self.nodes))

    def _consider(self, number: int) -> None:
        """Start, skip or leave a node after one of its parents has settled."""
        node = self.nodes[number]
        if number in self._readied or node.address in self.runs:
            return
        decision = self.tally.verdict(node, number)
        if (
            decision is Verdict.SKIP_FAILED
        ):  # first: what the node asks for then also counts while failing fast
            self._upstream_failed(number, node)
        elif self.record.failing and node.rule not in CLEANUP_RULES:
            self.skip(number, "execution_failed")
        elif decision is Verdict.START:
            self._make_ready(number)
        elif decision is Verdict.SKIP:
            self.skip(number, "branch_not_taken")

    def _upstream_failed(self, number: int, node: PlanNode) -> None:
        if not node.fails_with_dependency:
            self.skip(number, UPSTREAM_FAILED)
            return
        message = "a dependency failed, and on_dependency_failure is fail"
        self.fail(
            number, self.open_run(number), TaskError("dependency", message), dead_letter=False
        )

    def _make_ready(self, number: int) -> None:
        self._readied.add(number)
        self.ready.append(number)

    def _drain(self) -> None:
        """Follow every consequence, as far as one commit goes.

        Worklists, not recursion: a DAG may be 10,000 deep.
        """
        commands, considered, ready, record = (
            self.commands,
            self.considered,
            self.ready,
            self.record,
        )
        if self.reused and record.state is not ExecutionState.PENDING:
            reused_outputs.record(self, COMMIT_WEIGHT)
        while considered or (ready and record.state is ExecutionState.RUNNING):
            if commands.weight >= COMMIT_WEIGHT or len(commands.tasks) >= COMMIT_WEIGHT:
                self.go_on_later()
                break
            if considered:
                self._consider(considered.popleft())
            else:
                start(self, ready.popleft())
        if self.values:
            self.values.clear()
        if self.loaded and not self.wanted:
            self.loaded.clear()
        if self.waiting:
            self.wake(self.now + PREPARE_AGAIN_SECONDS)
        if not self.open and record.state not in EXECUTION_ENDS:
            ending.finish(self, ExecutionState.FAILED if record.error else ExecutionState.COMPLETED)
        elif self.deadlines:
            self.wake(self.deadlines[0][0])

    def go_on_later(self) -> None:
        """The rest waits for the next commit; the timer is for an owner that dies before it."""
        self.commands.more = True
        self.wake(self.now)

    def arm(self, due_at: float, run: NodeRun, kind: str) -> None:
        heappush(self.deadlines, (due_at, self.numbers[run.address], run.attempt, kind))

    def arm_backstop(self, run: NodeRun) -> None:
        self.arm(
            (run.started_at or 0.0) + self.node_of(run).timeout_seconds + BACKSTOP_SECONDS,
            run,
            "attempt",
        )

    def arm_queue(self, run: NodeRun) -> None:
        seconds = self.node_of(run).queue_timeout_seconds
        if seconds:
            self.arm((run.queued_at or 0.0) + seconds, run, "queue")

    def arm_execution(self) -> None:
        if self.plan.timeout_seconds is not None:
            started_at = self.record.started_at or self.now
            heappush(self.deadlines, (started_at + self.plan.timeout_seconds, -1, 0, "execution"))

    def wake(self, at: float) -> None:
        """The store keeps one timer per execution, the earliest.

        A later one is set when that fires.
        """
        if self.wake_at is None or at < self.wake_at:
            self.wake_at = at
            self.commands.timer_changed, self.commands.wake_at = True, at

    def move_execution(self, state: ExecutionState, reason: str | None = None) -> None:
        before = self.record.state
        check_execution(self.record.execution_id, before, state)
        self.record.state = state
        self.commands.record = self.record
        self.last_seq += 1
        self.commands.history.append(
            Transition(self.last_seq, self.now, "", before, state, 0, reason)
        )

    def in_order(self) -> Iterable[int]:
        """Every node after its parents."""
        return chain(self.plan.order, range(len(self.plan.nodes), len(self.nodes)))


_HANDLERS: dict[type, Callable[[Execution, Any], None]] = {
    ev.ExecutionStarted: Execution._on_started,  # noqa: SLF001
    ev.TaskStarted: Execution._on_task_started,  # noqa: SLF001
    ev.TaskSucceeded: Execution._on_task_succeeded,  # noqa: SLF001
    ev.TaskFailed: Execution._on_task_failed,  # noqa: SLF001
    ev.TaskLost: Execution._on_task_lost,  # noqa: SLF001
    ev.TaskReturned: Execution._on_task_returned,  # noqa: SLF001
    ev.TimerFired: Execution._on_timer,  # noqa: SLF001
    ev.CancelRequested: Execution._on_cancel,  # noqa: SLF001
    ev.PauseRequested: Execution._on_pause,  # noqa: SLF001
    ev.ResumeRequested: Execution._on_resume,  # noqa: SLF001
    ev.Continued: Execution._on_continued,  # noqa: SLF001
    ev.ExecutionBroke: Execution._on_broke,  # noqa: SLF001
    ev.NodesAdded: Execution._on_nodes_added,  # noqa: SLF001
}
