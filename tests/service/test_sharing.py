"""Shared answers: one computation for all concurrent callers.

The answer is cached for a moment; a failure never is.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.service.sharing import COST, RESULTS_MAX, REUSE_SECONDS_MAX, Shared
from tests.waiting import let_others_run


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Work:
    """Counts how often it was done; waits for `go_on`, and takes `seconds` of the clock."""

    def __init__(self, clock: Clock, seconds: float = 0.0) -> None:
        self.clock = clock
        self.seconds = seconds
        self.done = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.done += 1
        await self.go_on.wait()
        self.clock.now += self.seconds
        if self.error is not None:
            raise self.error
        return self.done


def with_work(scenario: Any, seconds: float = 0.0) -> None:
    async def main() -> None:
        clock = Clock()
        await scenario(Shared(2.0, clock), Work(clock, seconds), clock)

    asyncio.run(main())


def test_all_who_ask_at_once_get_the_answer_to_the_first() -> None:
    async def scenario(shared: Shared[int], work: Work, _clock: Clock) -> None:
        work.go_on.clear()
        asking = [asyncio.create_task(shared.get("a", work)) for _ in range(10)]
        await let_others_run()
        work.go_on.set()
        assert await asyncio.gather(*asking) == [1] * 10

    with_work(scenario)


def test_an_answer_is_cached_for_a_moment_and_each_key_has_its_own() -> None:
    async def scenario(shared: Shared[int], work: Work, clock: Clock) -> None:
        assert [
            await shared.get("a", work),
            await shared.get("b", work),
            await shared.get("a", work),
        ] == [1, 2, 1]
        clock.now += 1.9
        assert await shared.get("a", work) == 1
        clock.now += 0.2
        assert await shared.get("a", work) == 3

    with_work(scenario)


@pytest.mark.parametrize(
    ("took", "cached_seconds"), [(0.5, 0.5 * COST), (100.0, REUSE_SECONDS_MAX)]
)
def test_what_took_long_is_cached_longer(took: float, cached_seconds: float) -> None:
    async def scenario(shared: Shared[int], work: Work, clock: Clock) -> None:
        await shared.get("a", work)
        clock.now += cached_seconds - 0.1
        assert await shared.get("a", work) == 1
        clock.now += 0.2
        assert await shared.get("a", work) == 2

    with_work(scenario, seconds=took)


def test_a_failure_is_told_to_all_who_wait_and_not_cached() -> None:
    async def scenario(shared: Shared[int], work: Work, _clock: Clock) -> None:
        work.error = ValueError("no")
        work.go_on.clear()
        asking = [asyncio.create_task(shared.get("a", work)) for _ in range(3)]
        await let_others_run()
        work.go_on.set()
        assert [str(error) for error in await asyncio.gather(*asking, return_exceptions=True)] == [
            "no"
        ] * 3
        work.error = None
        assert await shared.get("a", work) == 2

    with_work(scenario)


def test_who_goes_away_does_not_take_the_answer_from_the_others() -> None:
    async def scenario(shared: Shared[int], work: Work, _clock: Clock) -> None:
        work.go_on.clear()
        first, second = (asyncio.create_task(shared.get("a", work)) for _ in range(2))
        await let_others_run()
        first.cancel()
        await let_others_run()
        work.go_on.set()
        assert await second == 1
        assert first.cancelled()

    with_work(scenario)


def test_no_more_answers_are_cached_than_fit() -> None:
    async def scenario(shared: Shared[int], work: Work, _clock: Clock) -> None:
        for key in range(RESULTS_MAX + 1):
            await shared.get(key, work)
        assert await shared.get(RESULTS_MAX, work) == RESULTS_MAX + 1, "the last is there"
        assert await shared.get(0, work) == RESULTS_MAX + 2, "the first is computed again"

    with_work(scenario)


def test_what_is_under_way_ends_when_it_is_closed() -> None:
    async def scenario(shared: Shared[int], work: Work, _clock: Clock) -> None:
        work.go_on.clear()
        asking = asyncio.create_task(shared.get("a", work))
        await let_others_run()
        shared.close()
        with pytest.raises(asyncio.CancelledError):
            await asking

    with_work(scenario)
