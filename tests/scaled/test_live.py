"""Work in another process, looked at while it is done."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.cli.commands import write
from tests.cli.fleet import asked, servers, started
from tests.waiting import until_now

HANDLERS = """
import os, threading
import penstock

@penstock.handler("waits", queue="patience")
def waits(config, ctx):
    ctx.log.info("waiting in %s", os.getpid())
    while not os.path.exists("go on"):
        threading.Event().wait(0.01)
    ctx.log.info("going on")
"""
DOCUMENT = {"name": "looked-at", "nodes": [{"id": "a", "handler": "waits"}]}


def _texts(address: str, execution_id: str) -> list[tuple[int, list[str], bool]]:
    items = asked(f"{address}/executions/{execution_id}/nodes/a/logs")["items"]
    lines = [[line.partition(" ")[2] for line in item["text"].splitlines()] for item in items]
    return [(item["attempt"], text, item["live"]) for item, text in zip(items, lines, strict=True)]


def _claimed_tasks(address: str) -> list[tuple[str, dict[str, Any]]]:
    workers = asked(f"{address}/workers")["items"]
    assert all(worker["started_at"].endswith("Z") for worker in workers)
    return [(worker["worker_id"], task) for worker in workers for task in worker["tasks"]]


def test_logs_and_tasks_of_another_process_are_seen_while_it_works_and_when_another_takes_over(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"handlers.py": HANDLERS})
    env = {**servers(), "PENSTOCK_SHUTDOWN_GRACE_SECONDS": "0"}
    with ExitStack() as stack:
        orchestrator = stack.enter_context(started("orchestrator", cwd=tmp_path, env=env))
        api = stack.enter_context(started("api", "--port", "0", cwd=tmp_path, env=env))
        first = stack.enter_context(
            started("worker", "--handlers", "handlers.py", cwd=tmp_path, env=env)
        )
        name = first.says("is ready").split(" ")[0]
        orchestrator.says("is ready")
        address = api.says("is ready").split(" ")[3] + "/api/v1"
        execution_id = asked(f"{address}/executions", {"definition": DOCUMENT})["execution_id"]

        so_far = until_now(lambda: _texts(address, execution_id), "a log to look at")
        assert so_far == [(1, [f"INFO waiting in {first.process.pid}"], True)]
        ((claimed_by, task),) = _claimed_tasks(address)
        assert claimed_by == name
        assert task.pop("seconds") > 0
        assert task == {
            "execution_id": execution_id,
            "node_id": "a",
            "attempt": 1,
            "handler": "waits",
            "queue": "patience",
            "workflow": "looked-at",
        }

        assert first.terminate() == 0
        second = stack.enter_context(
            started("worker", "--handlers", "handlers.py", cwd=tmp_path, env=env)
        )
        expected = [(2, [f"INFO waiting in {second.process.pid}"], True)]
        until_now(
            lambda: _texts(address, execution_id) == expected, "the log of the second attempt"
        )
        assert [task["attempt"] for _, task in _claimed_tasks(address)] == [2]
        (tmp_path / "go on").touch()
        until_now(lambda: asked(f"{address}/executions/{execution_id}")["state"] == "COMPLETED")
        assert _texts(address, execution_id) == [(2, [*expected[0][1], "INFO going on"], False)]
        until_now(lambda: _claimed_tasks(address) == [], "nobody to hold anything")
