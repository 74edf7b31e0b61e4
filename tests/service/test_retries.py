"""Retry of a finished execution, over the stores.

When it is allowed, that it happens once, and what the new execution takes over from the old one.
"""

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from penstock.config import Settings
from penstock.engine import reused_outputs
from penstock.engine.commands import Task
from penstock.engine.events import CancelRequested, TaskError, TaskFailed, TaskSucceeded
from penstock.errors import Conflict, InvalidInput, KeyReused, NotFound, StoreUnavailable
from penstock.orchestrator.owner import PartitionOwner
from penstock.sandbox import InlineSandbox
from penstock.service.backlog import Backlog
from penstock.service.executions import Executions
from penstock.service.retries import Retries
from penstock.service.signals import Signals
from penstock.service.submissions import Submissions
from penstock.service.timing import ServiceTiming
from penstock.service.workflows import Workflows
from penstock.stores.base import Intent
from penstock.stores.task_keys import key_of
from tests.orchestrator.desk import WORK, Desk, diamond, node

ONCE = {"max_attempts": 1}


def fragile() -> list[dict[str, Any]]:
    return [node("a"), node("b", "a", retry=ONCE), node("c", "a"), node("d", "b", "c")]


class Shop(Desk):
    """A desk with the service that retries stand on."""

    def __init__(self) -> None:
        super().__init__()
        workflows = Workflows(self.stores, self.plans, Settings(), lambda: WORK, ServiceTiming())
        backlog = Backlog(self.stores, waiting_tasks_max=0, workflow_unfinished_max=0)
        self.submissions = Submissions(self.stores, workflows, backlog, InlineSandbox())
        timing = ServiceTiming()
        executions = Executions(self.stores, self.plans, nullcontext, timing)
        signals = Signals(self.stores, executions)
        self.retries = Retries(self.stores, self.plans, self.submissions, signals)

    async def fetch(self, limit: int = 100_000) -> list[Task]:
        """Also those that have a priority."""
        waiting = sum(waiting for waiting, _ in (await self.stores.queue.depths()).values())
        return await self.stores.queue.fetch("worker-1", {"work"}, limit) if waiting else []

    async def work_until(self, owner: PartitionOwner, failing: str) -> list[Task]:
        """Everything succeeds but one node."""
        done: list[Task] = []
        await self.drain(owner)
        while tasks := await self.fetch():
            done += tasks
            for task in tasks:
                about = (*key_of(task), "worker-1", self.now)
                bad = task.node_id == failing
                await self.report(
                    TaskFailed(*about, TaskError("handler", "boom"), retryable=False)
                    if bad
                    else TaskSucceeded(*about, b'{"by":"%s"}' % task.node_id.encode())
                )
            await self.drain(owner)
        return done

    async def failed(self, owner: PartitionOwner, failing: str = "b", **fields: Any) -> str:
        name = await self.start(fragile(), on_failure="continue", **fields)
        await self.work_until(owner, failing)
        assert await self.state(name) == "FAILED"
        return name


def nodes(tasks: list[Task]) -> list[str]:
    return [task.node_id for task in tasks]


def test_a_retry_runs_what_did_not_complete_with_the_outputs_of_what_did() -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        old = await shop.failed(owner, input_value={"n": 7})
        preview = await shop.retries.preview(old)
        name, plan = await shop.retries.retry(old)
        assert plan == preview
        assert (plan.version, plan.reused) == (1, ["a", "c"])
        assert [(run.node_id, run.reason) for run in plan.runs] == [
            ("b", "failed"),
            ("d", "never ran"),
        ]
        tasks = await shop.work(owner, b'{"by":"the retry"}')
        assert nodes(tasks) == ["b", "d"]
        assert dict(tasks[0].inputs) == {"a": b'{"by":"a"}'}
        assert dict(tasks[1].inputs) == {"b": b'{"by":"the retry"}', "c": b'{"by":"c"}'}
        stored = await shop.stored(name)
        assert (stored.record.state, stored.record.input, stored.record.retry_of) == (
            "COMPLETED",
            b'{"n": 7}',
            old,
        )
        assert await shop.state(old) == "FAILED"

    asyncio.run(scenario())


def test_a_chain_of_retries_goes_on_from_its_end_with_the_same_idempotency_keys() -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        first = await shop.failed(owner)
        second, _ = await shop.retries.retry(first)
        assert nodes(await shop.work_until(owner, failing="d")) == ["b", "d"]
        third, plan = await shop.retries.retry(second)
        assert plan.reused == ["a", "b", "c"]
        [task] = await shop.work(owner)
        assert task.idempotency_key == f"{first}:d"
        assert await shop.state(third) == "COMPLETED"

    asyncio.run(scenario())


def test_labels_overrides_and_priority_are_the_old_ones_unless_told_otherwise() -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        plan = await shop.workflow(fragile())
        name = await shop.record_intent(plan)
        intent = await shop.stores.cold.executions.intent(name)
        assert intent is not None
        record = intent.record
        record.execution_id, record.labels = "labelled", {"team": "x"}
        record.overrides, record.priority = {"b": {"url": "y"}}, 5
        await shop.submissions.record_intents([Intent(record)])
        await shop.work_until(owner, "b")
        second, _ = await shop.retries.retry("labelled")
        [task] = [task for task in await shop.work_until(owner, "b") if task.node_id == "b"]
        assert (task.config, task.priority) == (b'{"url":"y"}', 5)
        assert (await shop.stored(second)).record.labels == {"team": "x"}
        third, _ = await shop.retries.retry(second, labels={"why": "again"})
        assert (await shop.stored(third)).record.labels == {"why": "again"}
        with pytest.raises(InvalidInput):
            await shop.retries.retry(third, labels={"no": float("nan")})

    asyncio.run(scenario())


def test_an_execution_that_has_not_ended_or_does_not_exist_is_refused() -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        name = await shop.start(diamond())
        with pytest.raises(
            Conflict, match="is PENDING; cancel it first, or wait until it has ended"
        ):
            await shop.retries.retry(name)
        await shop.drain(owner)
        with pytest.raises(Conflict, match="is RUNNING; cancel it first"):
            await shop.retries.preview(name)
        with pytest.raises(NotFound, match="no execution 'nobody'"):
            await shop.retries.retry("nobody")

    asyncio.run(scenario())


def test_where_everything_completed_only_a_chosen_node_can_run_again() -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        name = await shop.start(diamond())
        await shop.work(owner)
        for attempt in (shop.retries.retry(name), shop.retries.preview(name)):
            with pytest.raises(Conflict, match="everything completed; name a node with from"):
                await attempt
        with pytest.raises(NotFound, match="has no node 'e'"):
            await shop.retries.retry(name, start="e")
        _, plan = await shop.retries.retry(name, start="b")
        assert plan.reused == ["a", "c"]
        assert nodes(await shop.work(owner)) == ["b", "d"]

    asyncio.run(scenario())


def test_a_second_retry_is_refused_and_names_the_first() -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        old = await shop.failed(owner)
        name, _ = await shop.retries.retry(old)
        with pytest.raises(
            Conflict, match=f"was retried as {name}, which is PENDING; cancel that one first"
        ):
            await shop.retries.retry(old)
        await shop.work(owner)
        with pytest.raises(
            Conflict, match=f"was retried as {name}, which is COMPLETED; retry that one"
        ):
            await shop.retries.retry(old, start="a")

    asyncio.run(scenario())


@pytest.mark.parametrize("starts", [(None, None), (None, "a")], ids=["alike", "different"])
def test_two_retries_at_once_make_one_execution(starts: tuple[str | None, str | None]) -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        old = await shop.failed(owner)
        both, real = asyncio.Barrier(2), shop.submissions.record_intents

        async def record_intents(intents: list[Intent], *_: Any) -> list[str]:
            await both.wait()
            return await real(intents)

        shop.submissions.record_intents = record_intents  # type: ignore[assignment,method-assign]
        attempts = [shop.retries.retry(old, start=start) for start in starts]
        results = await asyncio.gather(*attempts, return_exceptions=True)
        retry_ids = {result[0] for result in results if not isinstance(result, BaseException)}
        [name] = retry_ids
        for result in results:
            if isinstance(result, BaseException):
                assert isinstance(result, Conflict)
                assert not isinstance(result, KeyReused)
                assert f"was retried as {name}" in str(result)
        assert len(results) - sum(isinstance(result, Conflict) for result in results) == 3 - len(
            set(starts)
        )
        await shop.work(owner)
        assert await shop.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_another_version_runs_what_changed_and_reuses_the_rest() -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        old = await shop.failed(owner)
        changed = [
            node("a"),
            node("b", "a"),
            node("c", "a", config={"x": 1}),
            node("d", "b", "c"),
            node("e", "a"),
        ]
        await shop.workflow(changed)
        await shop.workflow([node("a")])
        same = await shop.retries.preview(old, version="same")
        assert (same.version, same.reused) == (1, ["a", "c"])
        assert (await shop.retries.preview(old, version="latest")).version == 3
        assert await shop.retries.preview(old, version="2") == await shop.retries.preview(
            old, version=2
        )
        name, plan = await shop.retries.retry(old, version=2)
        assert plan.reused == ["a"]
        reasons = {run.node_id: run.reason for run in plan.runs}
        assert reasons == {
            "b": "failed",
            "c": "changed in version 2",
            "d": "never ran",
            "e": "new in version 2",
        }
        assert sorted(nodes(await shop.work(owner))) == ["b", "c", "d", "e"]
        assert (await shop.stored(name)).record.version == 2

    asyncio.run(scenario())


def test_a_version_that_is_not_there_or_wants_another_input_is_refused() -> None:
    async def scenario() -> None:
        shop = Shop()
        old = await shop.failed(await shop.own())
        await shop.workflow(fragile(), input_schema={"type": "object", "required": ["user"]})
        for version in (9, "0", "stable", "-1", "9" * 5000, "²", ""):
            with pytest.raises(NotFound):
                await shop.retries.preview(old, version=version)
        with pytest.raises(InvalidInput, match="doesn't fit the input_schema of flow@2"):
            await shop.retries.preview(old, version="latest")

    asyncio.run(scenario())


def test_a_retry_that_was_cancelled_before_it_began_has_lost_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lost(_events: object) -> None:
        raise StoreUnavailable("the start is lost; the owner will look for it")

    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        first = await shop.failed(owner)
        with monkeypatch.context() as patch:
            patch.setattr(shop.stores.hot, "append", lost)
            second, _ = await shop.retries.retry(first)
        await shop.stores.hot.append([CancelRequested(second)])
        assert await shop.work(owner) == []
        assert await shop.state(second) == "CANCELLED"
        _, plan = await shop.retries.retry(second)
        assert plan.reused == ["a", "c"]
        assert nodes(await shop.work(owner)) == ["b", "d"]

    asyncio.run(scenario())


def test_a_retry_that_broke_before_it_began_has_lost_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        shop = Shop()
        owner = await shop.own()
        first = await shop.failed(owner)
        second, before = await shop.retries.retry(first)
        with monkeypatch.context() as patch:
            patch.setattr(reused_outputs, "set_reused", lambda *_: 1 / 0)
            await shop.drain(owner)
        stored = await shop.stored(second)
        assert (stored.record.state, stored.runs) == ("FAILED", {})
        third, plan = await shop.retries.retry(second)
        assert plan.reused == before.reused
        assert nodes(await shop.work(owner)) == ["b", "d"]
        assert await shop.state(third) == "COMPLETED"

    asyncio.run(scenario())
