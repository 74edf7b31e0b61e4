"""The log of a handler can be read while it runs; that costs short tasks nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.definition.config import SecretText
from penstock.engine.commands import Task
from penstock.engine.events import TaskSucceeded
from penstock.errors import StoreUnavailable
from penstock.stores.memory import MemoryStores
from penstock.stores.task_keys import Key, key_of
from penstock.worker import live_logs
from penstock.worker.context import Context
from penstock.worker.live_logs import LiveLogs
from penstock.worker.registry import Handler, handler, registered
from penstock.worker.timing import WorkerTiming
from tests.contract.worker_harness import WorkerHarness
from tests.waiting import PATIENCE_SECONDS, until

CANARY = "canary-0123456789abcdefghijklmnopqrstuvwxyz"
NEVER_BY_ITSELF = WorkerTiming(live_logs_seconds=1e6)
FAST = 0.01
FAST_LOGS = WorkerTiming(live_logs_seconds=FAST)


class Shared:
    """The store's queue; it remembers what was shared, and fails as often as it is told."""

    def __init__(self, stores: MemoryStores, failures: int = 0) -> None:
        self._real = stores.queue
        self.failures = failures
        self.calls: list[dict[Key, str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def share_logs(self, texts: Mapping[Key, str]) -> None:
        self.calls.append(dict(texts))
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("OOM command not allowed")
        await self._real.share_logs(texts)


class Scene:
    """A worker, and live logs of it that look when the test says so, at a time that it says."""

    def __init__(self, failures: int = 0, *, timing: WorkerTiming = NEVER_BY_ITSELF) -> None:
        stores = MemoryStores(time.time)
        self.queue = Shared(stores, failures)
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()
        handlers = (Handler("says", self.says), Handler("waits", asyncio.Event().wait))
        self.harness = WorkerHarness(
            *handlers, stores=stores, queue=self.queue, timing=timing, shutdown_grace_seconds=0.0
        )
        self._live_logs = LiveLogs(self.queue, self.harness.worker._running, WorkerTiming())

    async def says(self, config: Any, ctx: Context) -> None:
        """Logs a first line and then what it is told to, until that is nothing."""
        line = config["first"]
        while line is not None:
            ctx.heartbeat(line)
            line = await self.lines.get()

    async def run(self, **fields: Any) -> Task:
        """An attempt that has logged one line."""
        task = await self.harness.give("says", {"first": "one"}, **fields)
        running = self.harness.worker._running
        await until(lambda: key_of(task) in running and running[key_of(task)].log.version)
        return task

    async def look(self, after: float = 1.0) -> None:
        await self._live_logs.look(asyncio.get_running_loop().time() + after)

    async def end(self, task: Task) -> Any:
        self.lines.put_nowait(None)
        return await self.harness.outcome(task)


def on_stage(scenario: Callable[[Scene], Any], failures: int = 0) -> None:
    async def main() -> None:
        scene = Scene(failures)
        async with scene.harness:
            await scenario(scene)

    asyncio.run(main())


def test_only_a_log_that_has_grown_is_shared() -> None:
    async def scenario(scene: Scene) -> None:
        task = await scene.run()
        for _ in range(3):
            await scene.look()
        scene.lines.put_nowait("two")
        await until(lambda: scene.harness.worker._running[key_of(task)].log.version == 2)
        for _ in range(3):
            await scene.look()
        assert scene.queue.calls == [
            {key_of(task): 'heartbeat "one"'},
            {key_of(task): 'heartbeat "one"\nheartbeat "two"'},
        ]

    on_stage(scenario)


def test_a_quiet_attempt_is_shared_again_before_a_store_forgets_it() -> None:
    async def scenario(scene: Scene) -> None:
        task = await scene.run()
        for after in (1, 19, 22, 40, 43):
            await scene.look(after)
        assert scene.queue.calls == [{key_of(task): 'heartbeat "one"'}] * 3

    on_stage(scenario)


def test_an_attempt_that_has_just_begun_or_has_logged_nothing_is_left_alone() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.run()
        await scene.look(0.5)
        assert scene.queue.calls == []
        silent = await scene.harness.give("waits")
        await scene.harness.started(silent)
        await scene.look(1.0)
        assert [len(call) for call in scene.queue.calls] == [1]

    on_stage(scenario)


def test_what_was_shared_of_an_attempt_that_is_over_is_taken_away_once() -> None:
    async def scenario(scene: Scene) -> None:
        task = await scene.run()
        await scene.look()
        assert (await scene.end(task)).logs == 'heartbeat "one"'
        for _ in range(3):
            await scene.look()
        assert scene.queue.calls[1:] == [{key_of(task): ""}]
        assert await scene.queue.live_log(key_of(task)) == ""

    on_stage(scenario)


def test_an_attempt_that_was_short_leaves_nothing_to_do() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.end(await scene.run())
        await scene.look()
        assert scene.queue.calls == []

    on_stage(scenario)


def test_a_look_that_failed_is_made_up_for_by_the_next() -> None:
    async def scenario(scene: Scene) -> None:
        task = await scene.run()
        with pytest.raises(StoreUnavailable):
            await scene.look()
        await scene.look()
        assert await scene.queue.live_log(key_of(task)) == 'heartbeat "one"'
        scene.queue.failures = 1
        await scene.end(task)
        with pytest.raises(StoreUnavailable):
            await scene.look()
        await scene.look()
        assert await scene.queue.live_log(key_of(task)) == ""

    on_stage(scenario, failures=1)


def test_no_secret_is_in_what_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", CANARY)

    async def scenario(scene: Scene) -> None:
        task = await scene.run(secrets=(SecretText(("first",), ("the token is ", "TOKEN", "")),))
        await scene.look()
        assert scene.queue.calls == [{key_of(task): 'heartbeat "the token is ***"'}]

    on_stage(scenario)


def test_many_long_logs_are_shared_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_logs, "LOOK_CHARACTERS_MAX", 1)

    async def scenario(scene: Scene) -> None:
        tasks = [await scene.run() for _ in range(3)]
        for after in (1, 2, 3, 4):
            await scene.look(after)
        assert [len(call) for call in scene.queue.calls] == [1, 1, 1]
        assert {key for call in scene.queue.calls for key in call} == {
            key_of(task) for task in tasks
        }

    on_stage(scenario)


def test_a_store_that_takes_no_logs_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    timing = WorkerTiming(live_logs_seconds=FAST, heartbeat_seconds=FAST)

    async def main() -> None:
        scene = Scene(failures=5, timing=timing)
        async with scene.harness:
            task = await scene.run()
            await until(lambda: scene.queue.failures == 0)
            assert isinstance(await scene.end(task), TaskSucceeded)

    asyncio.run(main())
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


def test_the_log_of_a_handler_in_a_thread_can_be_read_while_it_runs() -> None:
    go_on = threading.Event()

    def waits(_config: Any, ctx: Context) -> None:
        ctx.log.info("before")
        assert go_on.wait(PATIENCE_SECONDS)

    async def main() -> None:
        async with WorkerHarness(waits, timing=FAST_LOGS) as harness:
            task = await harness.give("waits")
            text = await until(
                lambda: harness.stores.queue.live_log(key_of(task)), "a log to look at"
            )
            assert text.endswith("INFO before")
            go_on.set()
            assert (await harness.outcome(task)).logs == text

    asyncio.run(main())


@handler("live_logs.waits", runs_in="process")
def waits_for_a_file(config: dict[str, Any], ctx: Context) -> None:
    ctx.log.info("before")
    while not Path(config["file"]).exists():
        threading.Event().wait(FAST)
    ctx.log.info("after")


def test_the_log_of_a_handler_in_a_process_can_be_read_while_it_runs(tmp_path: Path) -> None:
    handler = registered.get("live_logs.waits")
    assert handler is not None

    async def main() -> None:
        async with WorkerHarness(handler, timing=FAST_LOGS) as harness:
            task = await harness.give("live_logs.waits", {"file": str(tmp_path / "go on")})
            text = await until(
                lambda: harness.stores.queue.live_log(key_of(task)), "a log to look at"
            )
            assert text.endswith("INFO before")
            (tmp_path / "go on").touch()
            logged = (await harness.outcome(task)).logs.splitlines()
            assert [line.split(" ", 1)[1] for line in logged] == ["INFO before", "INFO after"]

    asyncio.run(main())
