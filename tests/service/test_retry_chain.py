"""Random workflows × random failures, retried until nothing is left.

The chain ends as if nothing had ever failed.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from penstock.definition.plan import Plan, compile_document
from penstock.engine import events as ev
from penstock.engine import handling
from penstock.engine.commands import ExecutionRecord, Task
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.states import ExecutionState
from penstock.service.retries import RetryPlan, plan_retry
from penstock.stores.base import Stored
from tests.engine.choices import Choices
from tests.engine.committed import Committed
from tests.engine.replica import commit_weight
from tests.sizes import explored, size

RULES = ("all_success", "all_success", "all_success", "none_failed", "all_done", "one_failed")
thorough = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])


class Ran(NamedTuple):
    stored: Stored
    dispatched: list[str]
    succeeded: Counter[str]
    """How often a worker's success was recorded."""


class Chain:
    """Executions of one plan.

    What a handler gives depends on its node, its config and its inputs, on nothing else.
    """

    def __init__(self, choose: Choices, plan: Plan) -> None:
        self.choose = choose
        self.plan = plan
        self.blobs: dict[str, bytes] = {}

    def run(self, reused: dict[str, Value], *, failures: bool) -> Ran:
        """From start to end, with workers that finish in any order and owners that come and go."""
        committed = Committed(
            ExecutionRecord("e", "random", 1, ExecutionState.PENDING, b"{}", 0.0), reused
        )
        event: ev.AnyEvent = ev.ExecutionStarted("e")
        out: list[Task] = []
        ran = Ran(Stored(msgspec.UNSET, {}, {}, 0, [], []), [], Counter())  # type: ignore[arg-type]  # set at the end
        execution = committed.load(self.plan)
        delayed: list[ev.AnyEvent] = []
        while True:
            if self.choose.one_in(4):
                execution = committed.load(self.plan)
            if failures and self.choose.one_in(20):
                delayed.append(event)  # clean-up nodes go on after a cancel
                event = ev.CancelRequested("e")
            with commit_weight(self.choose.any_of(1000, 1, 3)):
                handling.handle(execution, event, 0.0)
            commands = execution.take_commands()
            committed.commit(commands)
            committed.assert_equals(execution)
            out += commands.tasks
            ran.dispatched.extend(task.node_id for task in commands.tasks)
            ran.succeeded.update(
                line.node_id
                for line in commands.history
                if line.attempt and line.after == "COMPLETED"
            )
            stopped = {stop.node_id for stop in commands.stops}
            out = [task for task in out if task.node_id not in stopped]
            if commands.finished:
                record = execution.record
                runs = execution.runs
                outputs = execution.outputs
                return ran._replace(
                    stored=Stored(record, runs, outputs, execution.last_seq, [], [])
                )
            wanted = execution.wanted.items()
            if wanted:
                handling.provide(
                    execution, {address: self.blobs[blob.key] for address, blob in wanted}
                )
            if delayed:
                event = delayed.pop()
            elif wanted or commands.has_more or not out or self.choose.one_in(6):
                event = ev.Continued("e")
            else:
                event = self.outcome(out.pop(self.choose.below(len(out))), failures=failures)

    def outcome(self, task: Task, *, failures: bool) -> ev.AnyEvent:
        about = ("e", task.node_id, 1, task.attempt, "worker")
        if failures and self.choose.one_in(3):
            return ev.TaskFailed(
                *about, started_at=0.0, error=TaskError("handler", "no"), retryable=False
            )
        inputs = sorted((name, self.text(value)) for name, value in task.inputs)
        number = crc32(repr((task.node_id, self.text(task.config), inputs)).encode())
        return ev.TaskSucceeded(
            *about, started_at=0.0, output=self.put_output({"v": number, "flag": number % 3 > 0})
        )

    def put_output(self, output: Any) -> Value:
        text = msgspec.json.encode(output)
        if not self.choose.one_in(4):
            return text
        blob = Blob(f"blob-{len(self.blobs)}", len(text))
        self.blobs[blob.key] = text
        return blob

    def text(self, value: Value) -> bytes:
        return self.blobs[value.key] if isinstance(value, Blob) else value

    def result(self, ran: Ran) -> Any:
        """How each node ended, why, and with what."""
        outputs = {name: self.text(value) for name, value in ran.stored.outputs.items()}
        states = {name: str(run.state) for name, run in ran.stored.runs.items()}
        return str(ran.stored.record.state), states, outputs


def random_plan(choose: Choices, nodes_max: int, *, plain: bool) -> Plan:
    """A plain one has nothing that goes on behind a failure."""
    nodes: list[dict[str, Any]] = []
    above: dict[str, set[str]] = {}
    for i in range(1 + choose.below(nodes_max)):
        parents = choose.some_of(list(above), choose.any_of(1, 2, 0, 3))
        ancestors = sorted({*parents, *(name for parent in parents for name in above[parent])})
        node: dict[str, Any] = {
            "id": f"n{i}",
            "handler": choose.any_of("noop", "noop", "noop", "output"),
        }
        node |= {"dependencies": parents, "retry": {"max_attempts": 1}}
        if ancestors and choose.one_in(2):
            node["config"] = {"v": f"{{{{ {choose.any_of(*ancestors)}.v ?? 0 }}}}"}
        if ancestors and choose.one_in(3):
            node["condition"] = f"{{{{ {choose.any_of(*ancestors)}.flag ?? true }}}} == True"
        if not plain:
            node |= {"trigger_rule": choose.any_of(*RULES), "optional": choose.one_in(6)}
        above[f"n{i}"] = set(ancestors)
        nodes.append(node)
    note(repr(nodes))
    on_failure = choose.any_of("fail_fast", "continue")
    return compile_document({"name": "random", "nodes": nodes, "on_failure": on_failure}).plan


def retry_until_nothing_is_left(chain: Chain) -> tuple[Ran, Counter[str]]:
    ran = chain.run({}, failures=True)
    succeeded = ran.succeeded.copy()
    for turn in range(100):
        plan = plan_retry(ran.stored, chain.plan, chain.plan)
        if plan.is_idle and ran.stored.record.state is ExecutionState.COMPLETED:
            return ran, succeeded
        ran = _retry(chain, ran, plan, failures=turn < 4)
        succeeded += ran.succeeded
    raise AssertionError("it never ends")


def _retry(chain: Chain, ran: Ran, plan: RetryPlan, *, failures: bool) -> Ran:
    note(repr(plan))
    again = chain.run({name: ran.stored.outputs[name] for name in plan.reused}, failures=failures)
    assert set(plan.reused).isdisjoint(again.dispatched), "it was reused"
    assert {name for name, run in again.stored.runs.items() if run.reason == "kept"} == set(
        plan.reused
    )
    for name in plan.reused:
        assert again.stored.outputs[name] == ran.stored.outputs[name]
    return again


def judge(choose: Choices, nodes_max: int, *, plain: bool) -> None:
    chain = Chain(choose, random_plan(choose, nodes_max, plain=plain))
    last, succeeded = retry_until_nothing_is_left(chain)
    untroubled = chain.run({}, failures=False)
    assert chain.result(last) == chain.result(untroubled)
    assert succeeded >= untroubled.succeeded
    if plain:
        assert succeeded == untroubled.succeeded, "a node that succeeded ran again"


@thorough
@given(st.data(), st.booleans())
def test_a_chain_of_retries_ends_like_a_run_without_failures(data, plain):
    """Fails with the smallest workflow."""
    judge(Choices(lambda n: data.draw(st.integers(0, n - 1))), 6, plain=plain)


@explored
@settings(thorough, max_examples=size(short=150, full=2000))
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_long_chain_of_retries_ends_like_a_run_without_failures(seed, plain):
    judge(Choices(Random(seed).randrange), 20, plain=plain)
