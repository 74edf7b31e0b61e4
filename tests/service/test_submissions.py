"""Starting executions over stores that are slow, refuse, or are away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from penstock.config import Settings
from penstock.definition.model import HandlerDefaults
from penstock.errors import InvalidInput, InvalidWorkflow, KeyReused, NotFound, StoreUnavailable
from penstock.service import Service
from penstock.service.submissions import STARTS_MAX, TRANSACTIONS_MAX, StartRequest, check_labels
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import AuditSearch, Search
from tests.waiting import let_others_run, until

DOCUMENT = {"name": "flow", "nodes": [{"id": "a", "handler": "work"}]}


class Slow:
    """Stores whose writing a test holds up; it counts what each transaction has."""

    def __init__(self) -> None:
        self.stores = cast("Any", MemoryStores(lambda: 1000.0))
        self._record_intents = self.stores.cold.executions.record_intents
        self._append = self.stores.hot.append
        self.stores.cold.executions.record_intents, self.stores.hot.append = (
            self.record_intents,
            self.append,
        )
        self.stores.hot.check_open = self.check_open
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.created: list[int] = []
        self.appended: list[int] = []
        self.under_way = self.under_way_peak = 0
        self.cold_error: Exception | None = None
        self.append_error: Exception | None = None
        self.closed = False
        handlers = {"work": HandlerDefaults()}
        self.service = Service(
            self.stores, PlanCache(self.stores.cold, lambda: handlers), Settings(), lambda: handlers
        )

    def check_open(self) -> None:
        if self.closed:
            raise StoreUnavailable("Redis is away")

    async def record_intents(self, executions: Any, *audit: Any) -> Any:
        self.created.append(len(executions))
        self.under_way += 1
        self.under_way_peak = max(self.under_way_peak, self.under_way)
        try:
            await self.go_on.wait()
            if self.cold_error is not None:
                raise self.cold_error
            return await self._record_intents(executions, *audit)
        finally:
            self.under_way -= 1

    async def append(self, events: Any) -> None:
        self.appended.append(len(events))
        if self.append_error is not None:
            raise self.append_error
        await self._append(events)

    def submit(self, **fields: Any) -> asyncio.Task[Any]:
        return asyncio.create_task(
            self.service.submissions.submit(StartRequest(**{"workflow": DOCUMENT, **fields}))
        )

    async def count(self) -> int:
        return len(await self.stores.cold.executions.search(Search(limit=10_000)))


def over_slow_stores(scenario: Callable[[Slow], Awaitable[None]]) -> None:
    async def main() -> None:
        slow = Slow()
        await slow.service.workflows.plan(DOCUMENT)
        await scenario(slow)
        assert not slow.service.submissions._pending
        assert not slow.service.submissions._recording

    asyncio.run(main())


def test_what_comes_while_others_are_stored_goes_together_into_the_next_transaction() -> None:
    async def scenario(slow: Slow) -> None:
        slow.go_on.clear()
        tasks = []
        for turn in range(40):
            tasks.append(slow.submit())
            await until(
                lambda turn=turn: len(slow.created) == min(turn + 1, TRANSACTIONS_MAX),  # type: ignore[misc]
                "it is taken",
            )
            await let_others_run(3)
        assert slow.created == [1] * TRANSACTIONS_MAX
        slow.go_on.set()
        submissions = await asyncio.gather(*tasks)
        assert (
            len({submission.execution_id for submission in submissions}) == await slow.count() == 40
        )
        assert slow.created == [*[1] * TRANSACTIONS_MAX, 40 - TRANSACTIONS_MAX]
        assert slow.appended == slow.created
        assert slow.under_way_peak == TRANSACTIONS_MAX

    over_slow_stores(scenario)


def test_starts_of_one_turn_are_stored_in_portions_one_after_another() -> None:
    async def scenario(slow: Slow) -> None:
        await asyncio.gather(*(slow.submit() for _ in range(2 * STARTS_MAX + 7)))
        assert slow.created == [STARTS_MAX, STARTS_MAX, 7]
        assert slow.under_way_peak == 1

    over_slow_stores(scenario)


def test_one_that_is_refused_takes_no_others_with_it() -> None:
    async def scenario(slow: Slow) -> None:
        await slow.submit(idempotency_key="used")
        orders = [slow.submit(idempotency_key=f"key {number}") for number in range(60)]
        # its key was free when it was looked up, as with two that come at the same time
        bad = slow.service.submissions.record_soon(await _prepared(slow, {"n": 1}))
        results = await asyncio.gather(*orders, bad, return_exceptions=True)
        assert isinstance(results[-1], KeyReused)
        assert not any(isinstance(result, BaseException) for result in results[:-1])
        assert await slow.count() == 61
        assert len(slow.created) < 20

    over_slow_stores(scenario)


async def _prepared(slow: Slow, input_value: dict[str, Any]) -> Any:
    return await slow.service.submissions.prepare(
        StartRequest(workflow=DOCUMENT, input=input_value, idempotency_key="used")
    )


def test_a_store_that_is_away_is_asked_once_for_all_of_them() -> None:
    async def scenario(slow: Slow) -> None:
        slow.cold_error = StoreUnavailable("no database")
        tasks = [slow.submit() for _ in range(50)]
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, StoreUnavailable)
        assert slow.created == [50]
        slow.cold_error = None
        await slow.submit()
        assert await slow.count() == 1

    over_slow_stores(scenario)


def test_a_client_that_goes_while_its_start_is_stored_harms_nobody() -> None:
    async def scenario(slow: Slow) -> None:
        slow.go_on.clear()
        abandoned, stays = slow.submit(), slow.submit()
        await until(lambda: slow.created, "they are being stored")
        abandoned.cancel()
        slow.go_on.set()
        assert (await stays).record is not None
        assert await slow.count() == 2

    over_slow_stores(scenario)


def test_once_it_is_stored_the_answer_is_positive_though_nobody_could_be_told() -> None:
    async def scenario(slow: Slow) -> None:
        waits = await slow.submit(waits=True)
        slow.append_error = StoreUnavailable("Redis went away just now")
        started = await slow.submit()
        await slow.service.submissions.trigger(waits.execution_id, "flow", None, {})
        await slow.service.executions.request_control(started.execution_id, "cancel")
        assert len(slow.appended) == 3
        running = await slow.stores.cold.executions.started(0)
        assert set(running) == {started.execution_id, waits.execution_id}
        assert await slow.stores.cold.executions.control_requests(0) == {
            started.execution_id: "cancel"
        }

    over_slow_stores(scenario)


def test_what_waits_for_its_trigger_is_not_told_to_the_hot_store() -> None:
    async def scenario(slow: Slow) -> None:
        await slow.submit(waits=True)
        assert slow.appended == []

    over_slow_stores(scenario)


def test_nothing_is_written_while_it_is_known_that_nothing_can_be_appended() -> None:
    async def scenario(slow: Slow) -> None:
        waits, runs = await slow.submit(waits=True), await slow.submit()
        written = len(slow.created)
        slow.closed = True
        service, unknown = slow.service, {"name": "unknown", "nodes": DOCUMENT["nodes"]}
        attempts: list[Callable[[], Awaitable[Any]]] = [
            lambda: slow.submit(workflow=unknown),
            lambda: slow.submit(waits=True),
            lambda: service.submissions.submit_many(service.plans.cached("flow", 1), [None], {}),  # type: ignore[arg-type]
            lambda: service.submissions.trigger(waits.execution_id, "flow", None, {}),
            lambda: service.executions.request_control(runs.execution_id, "pause"),
        ]
        for attempt in attempts:
            with pytest.raises(StoreUnavailable, match="Redis is away"):
                await attempt()
        assert len(slow.created) == written
        assert await slow.stores.cold.definitions.get_workflow("unknown") is None
        assert await slow.stores.cold.executions.control_requests(0) == {}
        slow.closed = False
        await service.submissions.trigger(waits.execution_id, "flow", None, {})

    over_slow_stores(scenario)


def test_a_replay_is_answered_also_while_nothing_can_be_appended() -> None:
    async def scenario(slow: Slow) -> None:
        first = await slow.submit(idempotency_key="k")
        slow.closed = True
        again = await slow.submit(idempotency_key="k")
        assert (again.execution_id, again.replayed) == (first.execution_id, True)

    over_slow_stores(scenario)


def test_mistakes_are_told_as_before() -> None:
    async def scenario(slow: Slow) -> None:
        with pytest.raises(NotFound):
            await slow.submit(workflow="ghost")
        with pytest.raises(InvalidWorkflow):
            await slow.submit(workflow={"nodes": [{"id": "a", "handler": "nothing"}]})
        assert await slow.stores.cold.audit_log.audit(AuditSearch()) == []

    over_slow_stores(scenario)


LABELS: dict[str, tuple[dict[str, Any], str]] = {
    "a long name": ({"n" * 129: 1}, "has 129 characters; the limit is 128"),
    "a long value": (
        {"team": "v" * 1025},
        "the value of 'team' has 1,025 characters; the limit is 1,024",
    ),
    "a large object": (
        {"team": {"v": "v" * 2000}},
        "the value of 'team' has 2,008 characters; the limit is 1,024",
    ),
}


@pytest.mark.parametrize(("labels", "reason"), LABELS.values(), ids=LABELS)
def test_labels_have_a_length(labels, reason):
    with pytest.raises(InvalidInput, match=reason):
        check_labels(labels)


def test_labels_up_to_their_length_are_taken():
    check_labels({"n" * 128: "v" * 1024, "a": [1, 2]})


def test_configs_by_node_have_a_size():
    async def story() -> None:
        slow = Slow()
        with pytest.raises(
            InvalidInput, match=r"the configs by node have .* bytes; the limit is 1,048,576"
        ):
            await slow.service.submissions.trigger(
                "x", "flow", None, {"a": {"text": "x" * 1_100_000}}
            )
        with pytest.raises(NotFound):
            await slow.service.submissions.trigger(
                "x", "flow", None, {"a": {"text": "x" * 1_000_000}}
            )

    asyncio.run(story())
