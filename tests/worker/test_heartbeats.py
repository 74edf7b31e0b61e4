"""The process beside a worker, and the watch over its loop.

When they send heartbeats, when they don't.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis

from penstock.config import Settings
from penstock.errors import StoreUnavailable
from penstock.stores.redis import keys
from penstock.worker import heartbeat_process
from penstock.worker.heartbeats import Heartbeats, code_of, heartbeats_for
from penstock.worker.registry import Handler
from penstock.worker.timing import WorkerTiming
from tests.contract.worker_harness import WorkerHarness
from tests.redis.cluster import cluster_url
from tests.redis.tls_proxy import TlsProxy
from tests.servers import redis_server
from tests.waiting import until, until_now

FAST_SECONDS = 0.02
WORKER_ID = "worker-1"


def slow(_config: Any) -> None:
    """A handler."""


def _made(store: str = "redis://127.0.0.1:1", **times: float) -> Heartbeats:
    timing = WorkerTiming(heartbeat_seconds=FAST_SECONDS, **times)
    heartbeats = heartbeats_for(Settings(), store, WORKER_ID, [Handler("slow", slow)], timing)
    assert heartbeats is not None
    return heartbeats


@asynccontextmanager
async def _running(beats: Heartbeats) -> AsyncIterator[None]:
    service = asyncio.create_task(beats.run(lambda: 60.0))
    try:
        await until(lambda: beats.pid, "it is started")
        yield
    finally:
        service.cancel()
        await asyncio.wait((service,))
        await beats.close()


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_store_in_the_workers_own_process_needs_no_process_beside_it() -> None:
    for store in ("sqlite:///work.db", "memory://"):
        assert heartbeats_for(Settings(), store, WORKER_ID, [], WorkerTiming()) is None


def test_the_process_ends_with_its_worker_and_not_before() -> None:
    async def scenario() -> int:
        beats = _made()
        async with _running(beats):
            pid = beats.pid
            assert pid is not None
            os.kill(pid, signal.SIGTERM)  # a service manager tells every process of a service
            os.kill(pid, signal.SIGINT)
            beats.say_here()
            assert _is_there(pid)
        return pid

    assert not _is_there(asyncio.run(scenario()))


def test_a_process_that_dies_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        beats = _made(loop_told_seconds=FAST_SECONDS, companion_restart_seconds=0.0)
        async with _running(beats):
            first = beats.pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            await until(lambda: beats.pid not in (None, first), "another one")

    asyncio.run(scenario())
    assert "it is started again" in caplog.text


def test_a_worker_goes_on_without_a_process_that_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    async def scenario() -> None:
        beats = _made()
        service = asyncio.create_task(beats.run(lambda: 1.0))
        await until(lambda: "can't be started" in caplog.text)
        beats.expect(300.0)
        beats.say_here()
        service.cancel()
        await asyncio.wait((service,))
        await beats.close()

    asyncio.run(scenario())


ORPHANED = """
import os, subprocess, sys, time
script, order = sys.argv[1:]
process = subprocess.Popen([sys.executable, "-P", script, str(os.getpid())], stdin=subprocess.PIPE)
process.stdin.write(order.encode() + b"\\n")
process.stdin.flush()
if os.fork() == 0:
    time.sleep(60)  # what a handler has forked keeps the pipe open
    os._exit(0)
print(process.pid, flush=True)
time.sleep(60)
"""


def test_the_process_of_a_killed_worker_ends_although_something_keeps_its_pipe_open() -> None:
    order = {
        "store": "redis://127.0.0.1:1",
        "worker_id": WORKER_ID,
        "heartbeat_seconds": 5.0,
        "handlers": [],
        "logging": {},
        "dumps": None,
        "patience_seconds": 3600.0,
    }
    command = [sys.executable, "-c", ORPHANED, heartbeat_process.__file__, json.dumps(order)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert worker.stdout is not None
    pid = int(worker.stdout.readline())
    try:
        worker.kill()
        worker.wait()
        until_now(lambda: not _is_running(pid), "it has ended")
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.stdout.close()


def _is_running(pid: int) -> bool:
    """A zombie isn't: nobody may be there to bury it."""
    state = heartbeat_process.Worker(pid)._state()
    return bool(state) and not state.startswith("Z")


def test_a_stopped_process_is_seen_to_be_stopped() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        seen = heartbeat_process.Worker(process.pid)
        assert not seen.is_stopped
        process.send_signal(signal.SIGSTOP)
        until_now(lambda: seen.is_stopped)
        assert seen._ask_ps()[:1] in ("T", ""), "where there is no /proc; and ps isn't everywhere"
        process.send_signal(signal.SIGCONT)
        until_now(lambda: not seen.is_stopped)
    finally:
        process.kill()
        process.wait()


def test_heartbeats_are_sent_while_the_loop_is_silent_and_keep_what_the_worker_has_said() -> None:
    with redis_server() as server:
        link: Any = redis.Redis.from_url(server.url)
        link.hset(
            keys.WORKERS,
            WORKER_ID,
            json.dumps({"queues": ["q"], "running": 3, "at": 1.0, "since": 1.0}),
        )

        async def scenario() -> None:
            async with _running(_made(server.url, loop_told_seconds=3600.0)):
                await until(
                    lambda: int(link.hget(keys.BEATS, WORKER_ID) or 0) >= 2, "it beats", seconds=30
                )

        asyncio.run(scenario())
        said = json.loads(link.hget(keys.WORKERS, WORKER_ID))
        beats = int(link.hget(keys.BEATS, WORKER_ID))
        assert (said["queues"], said["running"], said["since"]) == (["q"], 3, 1.0)
        assert abs(said["at"] - time.time()) < 60
        assert int(link.hget(keys.BEATS, WORKER_ID)) == beats, "none after it was closed"
        link.close()


def test_a_heartbeat_finds_the_node_of_a_cluster_that_has_the_workers() -> None:
    url = cluster_url()
    heartbeat_process.send_heartbeat(url, WORKER_ID)
    with redis.RedisCluster.from_url(url) as link:
        beats: Any = link.hget(keys.BEATS, WORKER_ID)
        assert int(beats) == 1


def test_heartbeats_reach_a_server_that_wants_tls() -> None:
    with (
        redis_server() as server,
        TlsProxy(server.url) as proxy,
        redis.Redis.from_url(server.url) as link,
    ):

        async def scenario() -> None:
            async with _running(_made(proxy.url, loop_told_seconds=3600.0)):
                await until(lambda: link.hget(keys.BEATS, WORKER_ID), "it beats", seconds=30)

        asyncio.run(scenario())


def test_a_heartbeat_is_not_sent_to_a_server_whose_certificate_nobody_trusts() -> None:
    with (
        redis_server() as server,
        TlsProxy(server.url) as proxy,
        redis.Redis.from_url(server.url) as link,
    ):
        with pytest.raises(StoreUnavailable, match="certificate"):
            heartbeat_process.send_heartbeat(proxy.untrusted_url, WORKER_ID)
        assert link.hget(keys.BEATS, WORKER_ID) is None


DUMP = """\
Thread 0x01 (most recent call first):
  File "/lib/re/__init__.py", line 166 in match
  File "/app/handlers.py", line 12 in parse
  File "/lib/threading.py", line 982 in run

Thread 0x02 (most recent call first):
  File "/lib/threading.py", line 331 in wait

Current thread 0x03 (most recent call first):
  File "/lib/asyncio/base_events.py", line 1922 in _run_once
"""


def test_the_handler_whose_code_is_on_a_stack_is_named() -> None:
    handlers = [("other", "/app/handlers.py", 1, 8), ("parse", "/app/handlers.py", 10, 20)]
    names, stacks = heartbeat_process.who_runs(DUMP, handlers)
    assert names == ["parse"]
    assert "re/__init__.py" in stacks
    assert "0x02" not in stacks
    assert heartbeat_process.who_runs(DUMP, handlers[:1]) == ([], DUMP.strip())


def test_the_code_of_a_handler_is_found_behind_what_wraps_it() -> None:
    class Callable:
        def __call__(self, _config: Any) -> None:
            pass

    @functools.wraps(slow)
    def wrapper(*arguments: Any) -> None:
        slow(*arguments)

    assert code_of(wrapper) is code_of(functools.partial(slow, 1)) is slow.__code__
    assert code_of(Callable()) is Callable.__call__.__code__
    assert code_of(len) is None


async def blocks() -> str:
    threading.Event().wait(0.5)
    return "done"


async def blocks_in_a_task_of_its_own() -> str:
    return await asyncio.create_task(blocks())


@pytest.mark.parametrize("function", [blocks, blocks_in_a_task_of_its_own])
def test_a_handler_that_blocks_the_loop_is_logged_once_with_its_name_and_its_stack(
    function: Any, caplog: pytest.LogCaptureFixture
) -> None:
    timing = WorkerTiming(loop_blocked_seconds=0.1, loop_look_seconds=FAST_SECONDS)

    async def scenario() -> None:
        harness = WorkerHarness(function, timing=timing)
        harness.worker.guard_loop("memory://")
        async with harness:
            await harness.run(function.__name__)

    with caplog.at_level(logging.WARNING, "penstock.worker"):
        asyncio.run(scenario())
    logged = [record for record in caplog.records if "has blocked the loop" in record.getMessage()]
    assert len(logged) == 1
    if function is blocks or sys.version_info >= (3, 12):
        assert f"the handler {function.__name__}" in logged[0].getMessage()
    assert "threading.Event().wait(0.5)" in str(vars(logged[0])["stack"])


def test_a_handler_whose_time_ran_out_while_another_blocked_the_loop_gets_it_back() -> None:
    loop_is_blocked = asyncio.Event()

    async def waits() -> str:
        await loop_is_blocked.wait()
        await asyncio.to_thread(int)  # one more turn of the loop
        return "done"

    async def blocks_long() -> None:
        await until(lambda: innocents_timer() is not None, "the other's time limit is set")
        loop_is_blocked.set()
        threading.Event().wait(1.8)

    def innocents_timer() -> Any:
        return next(
            attempt._timer
            for attempt in harness.worker._running.values()
            if attempt.task.handler == "waits"
        )

    async def scenario() -> Any:
        async with harness:
            innocent = await harness.give("waits", timeout_seconds=0.5)
            await harness.give("blocks_long")
            return await harness.outcome(innocent)

    harness = WorkerHarness(waits, blocks_long)
    outcome = asyncio.run(scenario())
    assert json.loads(outcome.output) == "done"
