"""Tasks that nobody takes are moved to another queue, given up in the end, or waited for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Task
from penstock.orchestrator.backlog import BacklogWatch
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.routing import Routing, live, queues_of
from penstock.stores.base import Offer
from tests.orchestrator.desk import Desk, node, quick

LIMIT_SECONDS = 60.0
LOOK_SECONDS = 2.0
TIMING = quick(backlog_seconds=LOOK_SECONDS, no_handler_seconds=LIMIT_SECONDS)
USUAL = HandlerDefaults()
SPECIAL = HandlerDefaults(queue="special")


class Hall(Desk):
    """A desk, and workers that say what they do."""

    async def open(self) -> None:
        self.routing = Routing(self.stores.queue, self.timing)
        self.owner: PartitionOwner = await self.own()
        self.owner._routing = self.routing
        self.watch = BacklogWatch(self.stores.queue, self.owner.lease, self.routing, self.timing)

    async def worker(self, name: str, *queues: str, **handlers: HandlerDefaults) -> None:
        self.now += 1
        await self.stores.queue.heartbeat(name, set(queues), [], handlers)
        await self.routing.look()

    async def leaves(self, name: str) -> None:
        await self.stores.queue.leave(name, [])
        await self.routing.look()

    async def meet(self, name: str, queue: str, *handlers: str) -> list[Task]:
        """The worker looks into the queue."""
        fetching = asyncio.create_task(self.stores.queue.fetch(name, {queue}, 100, set(handlers)))
        for _ in range(5):
            await asyncio.sleep(0)
        if fetching.done():
            return fetching.result()
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
        return []

    async def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds / LOOK_SECONDS)):
            self.now += LOOK_SECONDS
            await self.watch.look(LOOK_SECONDS)
        await self.drain(self.owner)

    async def queues(self) -> dict[str, int]:
        return {backlog.queue: backlog.waiting for backlog in await self.stores.queue.backlog(0)}


def in_the_hall(scenario: Callable[[Hall], Awaitable[None]]) -> None:
    async def main() -> None:
        hall = Hall(timing=TIMING)
        await hall.open()
        await scenario(hall)

    asyncio.run(main())


def test_tasks_go_to_the_queue_of_the_live_worker_that_started_last() -> None:
    async def scenario(hall: Hall) -> None:
        await hall.worker("old", "work", work=USUAL)
        await hall.worker("new", "special", "work", work=SPECIAL)
        await hall.start([node("a")])
        await hall.drain(hall.owner)
        assert await hall.queues() == {"special": 1}

    in_the_hall(scenario)


def test_what_a_dead_worker_registered_decides_nothing() -> None:
    async def scenario(hall: Hall) -> None:
        await hall.stores.cold.definitions.remember_handlers(
            {"work": SPECIAL}
        )  # as a worker does when it starts
        await hall.worker("living", "work", work=USUAL)
        await hall.start([node("a")])
        await hall.drain(hall.owner)
        assert await hall.queues() == {"work": 1}

    in_the_hall(scenario)


def test_its_retries_and_time_out_decide_nothing_either() -> None:
    async def scenario(hall: Hall) -> None:
        await hall.stores.cold.definitions.remember_handlers(
            {"work": HandlerDefaults(timeout_seconds=1.0)}
        )
        await hall.worker("living", "work", work=HandlerDefaults(timeout_seconds=77.0))
        hall.plans.live = hall.routing.defaults
        plan = await hall.workflow([node("a")])
        assert (await hall.plans.need(plan.name, plan.version)).nodes[0].timeout_seconds == 77.0
        await hall.leaves("living")
        await hall.plans.learn()
        assert (await hall.plans.need(plan.name, plan.version)).nodes[0].timeout_seconds == 1.0, (
            "the last word there is"
        )

    in_the_hall(scenario)


def test_tasks_that_wait_where_their_worker_died_go_to_the_queue_of_another() -> None:
    async def scenario(hall: Hall) -> None:
        await hall.worker("doomed", "special", work=SPECIAL)
        name = await hall.start([node("a", retry={"max_attempts": 1}), node("b")])
        await hall.drain(hall.owner)
        assert await hall.queues() == {"special": 2}
        await hall.leaves("doomed")
        await hall.worker("living", "work", work=USUAL)
        await hall.pass_time(2 * LOOK_SECONDS)
        assert await hall.queues() == {"work": 2}
        await hall.work(hall.owner)
        stored = await hall.stored(name)
        assert {address: (str(run.state), run.attempt) for address, run in stored.runs.items()} == {
            "a": ("COMPLETED", 1),
            "b": ("COMPLETED", 1),
        }

    in_the_hall(scenario)


def test_a_task_may_move_to_and_fro() -> None:
    async def scenario(hall: Hall) -> None:
        await hall.start([node("a")])
        for round_ in range(3):
            await hall.worker(f"usual-{round_}", "work", work=USUAL)
            await hall.drain(hall.owner)
            await hall.pass_time(2 * LOOK_SECONDS)
            assert await hall.queues() == {"work": 1}
            await hall.leaves(f"usual-{round_}")
            await hall.worker(f"special-{round_}", "special", work=SPECIAL)
            await hall.pass_time(2 * LOOK_SECONDS)
            assert await hall.queues() == {"special": 1}
            await hall.leaves(f"special-{round_}")

    in_the_hall(scenario)


def test_a_queue_that_the_document_names_is_not_left() -> None:
    async def scenario(hall: Hall) -> None:
        await hall.worker("living", "work", work=USUAL)
        await hall.start([node("a", queue="secure")])
        await hall.drain(hall.owner)
        await hall.pass_time(10 * LIMIT_SECONDS)
        assert await hall.queues() == {"secure": 1}, "and it waits for as long as it takes"

    in_the_hall(scenario)


def test_a_handler_that_nobody_of_the_queue_has_fails_the_task_after_the_limit_and_not_before() -> (
    None
):
    async def scenario(hall: Hall) -> None:
        await hall.worker("old", "shared", other=USUAL)
        name = await hall.start([node("a", queue="shared", retry={"max_attempts": 30})])
        await hall.drain(hall.owner)
        assert await hall.meet("old", "shared", "other") == []
        await hall.pass_time(LIMIT_SECONDS - LOOK_SECONDS)
        assert await hall.states(name) == {"a": "QUEUED"}
        await hall.pass_time(2 * LOOK_SECONDS)
        stored = await hall.stored(name)
        (failure,) = stored.runs["a"].failures
        assert (failure.error.category, failure.attempt, failure.worker_id) == (
            "no_handler",
            1,
            None,
        )
        assert "'work'" in failure.error.message
        assert "'shared'" in failure.error.message
        assert [line.after for line in stored.history if line.node_id == "a"] == [
            "QUEUED",
            "FAILED",
        ], "nobody began it"
        assert len(hall.stores.hot.dead_letters) == 1
        assert await hall.queues() == {}

    in_the_hall(scenario)


def test_a_task_that_comes_late_has_its_own_time() -> None:
    async def scenario(hall: Hall) -> None:
        await hall.worker("old", "shared", other=USUAL)
        early = await hall.start([node("a", queue="shared")])
        await hall.drain(hall.owner)
        await hall.meet("old", "shared", "other")
        await hall.pass_time(LIMIT_SECONDS / 2)
        late = await hall.start([node("a", queue="shared")])
        await hall.drain(hall.owner)
        await hall.meet("old", "shared", "other")
        await hall.pass_time(LIMIT_SECONDS / 2 + LOOK_SECONDS)
        assert (await hall.state(early), await hall.state(late)) == ("FAILED", "RUNNING")
        await hall.worker("new", "shared", work=USUAL)
        assert [task.execution_id for task in await hall.meet("new", "shared", "work")] == [late]

    in_the_hall(scenario)


def test_a_worker_that_comes_starts_the_time_anew() -> None:
    async def scenario(hall: Hall) -> None:
        await hall.worker("old", "shared", other=USUAL)
        name = await hall.start([node("a", queue="shared")])
        await hall.drain(hall.owner)
        await hall.meet("old", "shared", "other")
        await hall.pass_time(LIMIT_SECONDS - LOOK_SECONDS)
        await hall.worker("new", "shared", work=USUAL)  # busy: it takes nothing
        await hall.pass_time(LIMIT_SECONDS)
        await hall.leaves("new")
        await hall.pass_time(LIMIT_SECONDS - LOOK_SECONDS)
        assert await hall.state(name) == "RUNNING"

    in_the_hall(scenario)


def test_a_pool_that_is_down_fails_nothing() -> None:
    """Not even where a worker without the handler has been."""

    async def scenario(hall: Hall) -> None:
        await hall.worker("old", "shared", other=USUAL)
        name = await hall.start([node("a", queue="shared")])
        await hall.drain(hall.owner)
        await hall.meet("old", "shared", "other")
        await hall.leaves("old")
        await hall.pass_time(10 * LIMIT_SECONDS)
        assert await hall.state(name) == "RUNNING"

    in_the_hall(scenario)


def test_a_queue_without_a_worker_is_said_once_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(hall: Hall) -> None:
        with caplog.at_level(logging.INFO, "penstock.orchestrator"):
            await hall.worker("living", "other", other=USUAL)
            await hall.start([node("a"), node("b")])
            await hall.drain(hall.owner)
            await hall.pass_time(20 * LOOK_SECONDS)
            assert [record.levelname for record in caplog.records] == ["WARNING"]
            assert (
                "2 tasks wait in the queue 'work': no live worker serves the queue 'work'"
                in caplog.text
            )
            await hall.worker("newcomer", "work", work=USUAL)
            await hall.pass_time(20 * LOOK_SECONDS)
            assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]

    in_the_hall(scenario)


@pytest.mark.parametrize(
    ("offers", "queues"),
    [
        ([], {}),
        ([Offer("a", {"work"}, {"work": USUAL})], {"work": "work"}),
        ([Offer("a", {"special", "work"}, {"work": SPECIAL})], {"work": "special"}),
        # --queues work: it doesn't serve what it asks for
        ([Offer("a", {"work"}, {"work": SPECIAL})], {}),
        (
            [
                Offer("b", {"work"}, {"work": USUAL}, 2.0),
                Offer("a", {"special"}, {"work": SPECIAL}, 1.0),
            ],
            {"work": "work"},
        ),
        ([Offer("a", {"work"}, None)], {}),  # of an older version
        (
            [
                Offer("a", {"special"}, {"work": SPECIAL}, 2.0, 100.0),
                Offer("b", {"work"}, {"work": USUAL}, 1.0),
            ],
            {"work": "work"},
        ),
    ],
)
def test_the_queue_of_a_handler_is_what_its_newest_live_worker_asks_for_and_serves(
    offers: list[Offer], queues: dict[str, Any]
) -> None:
    assert queues_of(live(offers, TIMING.worker_dead_seconds)) == queues
