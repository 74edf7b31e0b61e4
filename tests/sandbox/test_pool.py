"""The sandbox: one job at a time in each process.

Its limits hold, whatever a job does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from penstock.sandbox import Job, JobFailed, Overrun, SandboxPool, call
from penstock.sandbox.pool import LARGE_JOB_BYTES, Turns
from tests.waiting import until

MIB = 1024 * 1024
ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def pool(
    processes: int = 1, seconds: float = 0.2, memory_bytes: int = 64 * MIB, answer: int = 32 * MIB
):
    new_pool = SandboxPool(
        processes=processes, seconds=seconds, memory_bytes=memory_bytes, answer_bytes_max=answer
    )
    try:
        yield new_pool
    finally:
        await new_pool.close()


def job(name: str, *parts: bytes, turn: str = "") -> Job:
    return Job(f"tests.sandbox.jobs:{name}", parts, turn)


async def answers(sandbox: SandboxPool, what: Job) -> list[bytes]:
    return [answer async for answer in sandbox.run(what)]


def test_every_answer_of_a_job_comes_back():
    async def work() -> None:
        async with pool() as sandbox:
            large = b"x" * (8 * MIB)
            assert await answers(sandbox, job("echo", b"", large, b"end")) == [b"", large, b"end"]

    asyncio.run(work())


def test_one_process_does_many_jobs():
    async def work() -> None:
        async with pool() as sandbox:
            assert len({await call(sandbox, job("say_who")) for _ in range(5)}) == 1

    asyncio.run(work())


def test_computing_without_end_is_ended_and_the_next_job_runs():
    async def work() -> None:
        async with pool() as sandbox:
            heard: list[bytes] = []

            async def hear() -> None:
                async for answer in sandbox.run(job("compute", b"said")):
                    heard.append(answer)  # noqa: PERF401 -- kept when it ends with an exception

            with pytest.raises(
                Overrun, match=r"it took more than 0\.2 s of computing time \(expression_seconds\)"
            ):
                await hear()
            assert heard == [b"said"]
            assert await answers(sandbox, job("echo", b"next")) == [b"next"]

    asyncio.run(work())


@pytest.mark.parametrize("what", [job("take_memory", b"500000000"), job("abort")])
def test_taking_too_much_memory_is_ended_however_the_job_dies_of_it(what: Job):
    async def work() -> None:
        async with pool() as sandbox:
            with pytest.raises(
                Overrun, match=r"it needed more than 64 MiB of memory \(expression_memory_bytes\)"
            ):
                await call(sandbox, what)
            assert await answers(sandbox, job("echo", b"next")) == [b"next"]

    asyncio.run(work())


def test_an_answer_above_the_limit_is_refused():
    async def work() -> None:
        async with pool(answer=1000) as sandbox:
            with pytest.raises(Overrun, match="the result has 2,000 bytes"):
                await call(sandbox, job("take_memory", b"2000"))

    asyncio.run(work())


def test_a_job_that_raises_says_what():
    async def work() -> None:
        async with pool() as sandbox:
            with pytest.raises(JobFailed, match="ValueError: a mistake"):
                await call(sandbox, job("fail"))
            assert await answers(sandbox, job("echo", b"next")) == [b"next"]

    asyncio.run(work())


def test_a_job_whose_process_somebody_kills_is_done_again(tmp_path: Path):
    async def work() -> None:
        async with pool() as sandbox:
            what = job("be_killed", str(tmp_path / "kills").encode(), b"2")
            assert await answers(sandbox, what) == [b"first", b"second"]

    asyncio.run(work())


def test_a_job_whose_process_is_killed_every_time_is_given_up(tmp_path: Path):
    async def work() -> None:
        async with pool() as sandbox:
            with pytest.raises(Overrun, match="ended with SIGKILL, 3 times"):
                await answers(sandbox, job("be_killed", str(tmp_path / "kills").encode(), b"99"))

    asyncio.run(work())


def test_a_cancelled_job_leaves_no_process_and_gives_back_its_turn():
    async def work() -> None:
        async with pool(seconds=100.0) as sandbox:
            started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

            async def wait() -> None:
                async for answer in sandbox.run(job("wait_for_ever")):
                    started.set_result(int(answer))

            waiting = asyncio.create_task(wait())
            process = psutil.Process(await started)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert await answers(sandbox, job("echo", b"next")) == [b"next"]
            await asyncio.to_thread(psutil.wait_procs, [process], 20)
            assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE

    asyncio.run(work())


def test_large_jobs_go_one_after_another_and_small_ones_past_them():
    async def work() -> None:
        large = b"x" * LARGE_JOB_BYTES
        async with pool(processes=2, seconds=100.0) as sandbox:
            started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

            async def wait() -> None:
                async for answer in sandbox.run(job("wait_for_ever", large)):
                    started.set_result(int(answer))

            waiting = asyncio.create_task(wait())
            await started
            second = asyncio.create_task(answers(sandbox, job("say_who", large)))
            assert await answers(sandbox, job("echo", b"small")) == [b"small"]
            assert not second.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert await second != [str(started.result()).encode()]

    asyncio.run(work())


def test_a_job_that_is_cancelled_while_its_process_starts_leaves_nothing_behind():
    before = set(psutil.Process().children())  # servers of other tests

    def started() -> set[psutil.Process]:
        return set(psutil.Process().children()) - before

    async def work() -> None:
        async with pool() as sandbox:
            waiting = asyncio.create_task(call(sandbox, job("say_who")))
            await until(started)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert not started()

    asyncio.run(work())


def test_a_child_gets_no_secrets_with_its_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", "canary")
    monkeypatch.setenv("DATABASE_URL", "canary")

    async def work() -> None:
        async with pool() as sandbox:
            names = set((await call(sandbox, job("environment"))).decode().split())
            assert not {"PENSTOCK_SECRET_TOKEN", "DATABASE_URL"} & names

    asyncio.run(work())


def test_a_child_ends_with_the_process_that_started_it():
    """Killed, so that nothing is closed."""
    code = (
        "import asyncio, os, sys\n"
        "from penstock.sandbox import Job, SandboxPool, call\n"
        "async def work():\n"
        "    pool = SandboxPool(processes=1, seconds=5, memory_bytes=2**26, "
        "answer_bytes_max=1000)\n"
        "    answer = await call(pool, Job('tests.sandbox.jobs:say_who', []))\n"
        "    print(answer.decode(), flush=True)\n"
        "    sys.stdin.read()\n"
        "asyncio.run(work())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    _, alive = psutil.wait_procs([child], timeout=30)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_whoever_has_much_to_do_keeps_nobody_waiting():
    async def work() -> None:
        turns = Turns(1)
        order: list[str] = []
        await turns.take("busy")

        async def one(name: str) -> None:
            await turns.take(name)
            order.append(name)
            turns.give_back()

        waiting = [
            asyncio.create_task(one(name)) for name in ("busy", "busy", "busy", "other", "third")
        ]
        await asyncio.sleep(0)
        turns.give_back()
        await asyncio.gather(*waiting)
        assert order == ["busy", "other", "third", "busy", "busy"]

    asyncio.run(work())


def test_a_turn_is_not_lost_with_one_who_gives_up():
    async def work() -> None:
        turns = Turns(1)
        await turns.take("a")
        first, second = (asyncio.create_task(turns.take(name)) for name in ("b", "c"))
        await asyncio.sleep(0)
        turns.give_back()
        first.cancel()  # it has the turn by now, and doesn't know yet
        await asyncio.gather(first, return_exceptions=True)
        async with asyncio.timeout(10):
            await second

    asyncio.run(work())
