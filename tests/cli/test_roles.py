"""`penstock api`, `orchestrator` and `worker`: each in a process of its own."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import pytest

from tests.cli.commands import penstock, write
from tests.cli.fleet import Started, asked, servers, started
from tests.waiting import until_now

HANDLERS = """
import os, time
import penstock

@penstock.handler("greet", queue="greetings")
def greet(config):
    return {"text": "hello " + config["name"], "pid": os.getpid()}

@penstock.handler("slow")
def slow(config):
    open("began", "a").write("x")
    time.sleep(config["seconds"])
    return {}
"""


def address_of(api: Started) -> str:
    return api.says("is ready").split(" ")[3]


def flow(handler: str, **config: object) -> dict[str, object]:
    return {
        "definition": {"name": "flow", "nodes": [{"id": "a", "handler": handler, "config": config}]}
    }


def test_three_processes_run_a_workflow(tmp_path):
    write(tmp_path, {"handlers.py": HANDLERS})
    env = servers()
    with ExitStack() as stack:
        worker = stack.enter_context(
            started("worker", "--handlers", "handlers.py", cwd=tmp_path, env=env)
        )
        orchestrator = stack.enter_context(started("orchestrator", cwd=tmp_path, env=env))
        api = stack.enter_context(started("api", "--port", "0", cwd=tmp_path, env=env))
        worker.says("is ready")
        orchestrator.says("is ready")
        address = address_of(api)
        ended = asked(f"{address}/api/v1/executions?wait=30", flow("greet", name="Ada"))
        assert ended["state"] == "COMPLETED"
        assert ended["nodes"]["a"]["output"] == {"text": "hello Ada", "pid": worker.process.pid}
        assert len(asked(f"{address}/api/v1/workers")["items"]) == 1
        assert len(asked(f"{address}/api/v1/orchestrators")["items"]) == 1
        assert [role.terminate() for role in (api, worker, orchestrator)] == [0, 0, 0]
        assert [role.output.splitlines()[-1] for role in (api, worker, orchestrator)] == [
            "stopped"
        ] * 3


def test_a_worker_finishes_what_it_runs_when_it_is_asked_to_stop(tmp_path):
    write(tmp_path, {"handlers.py": HANDLERS})
    env = servers()
    with ExitStack() as stack:
        worker = stack.enter_context(
            started("worker", "--handlers", "handlers.py", cwd=tmp_path, env=env)
        )
        stack.enter_context(started("orchestrator", cwd=tmp_path, env=env)).says("is ready")
        address = address_of(
            stack.enter_context(started("api", "--port", "0", cwd=tmp_path, env=env))
        )
        worker.says("is ready")
        execution_id = asked(f"{address}/api/v1/executions", flow("slow", seconds=1))[
            "execution_id"
        ]
        until_now((tmp_path / "began").exists)
        assert worker.terminate() == 0
        until_now(
            lambda: asked(f"{address}/api/v1/executions/{execution_id}")["state"] == "COMPLETED"
        )
        assert (tmp_path / "began").read_text() == "x"
        assert asked(f"{address}/api/v1/workers")["items"] == []


def test_a_second_signal_stops_a_worker_at_once(tmp_path):
    write(tmp_path, {"handlers.py": HANDLERS})
    env = {**servers(), "PENSTOCK_SHUTDOWN_GRACE_SECONDS": "1000"}
    with ExitStack() as stack:
        worker = stack.enter_context(
            started("worker", "--handlers", "handlers.py", cwd=tmp_path, env=env)
        )
        stack.enter_context(started("orchestrator", cwd=tmp_path, env=env)).says("is ready")
        address = address_of(
            stack.enter_context(started("api", "--port", "0", cwd=tmp_path, env=env))
        )
        worker.says("is ready")
        asked(f"{address}/api/v1/executions", flow("slow", seconds=1000))
        until_now((tmp_path / "began").exists)
        worker.process.send_signal(signal.SIGTERM)
        worker.says("1 attempts have 1000 s to end")
        assert worker.terminate() == 128 + signal.SIGTERM


@pytest.mark.parametrize("role", ["worker", "orchestrator"])
def test_a_role_answers_for_itself(tmp_path, role):
    with started(
        role, "--health-port", "0", cwd=tmp_path, env={**servers(), "PENSTOCK_LOG_FORMAT": "json"}
    ) as process:
        process.says("is ready")
        address = process.says("health and metrics at").split(" at ")[1].partition('"')[0]
        assert asked(f"{address}/health/live") == {"status": "ok"}
        assert asked(f"{address}/health/ready") == {"status": "ok"}
        assert "penstock_" in asked(f"{address}/metrics")
        assert process.terminate() == 0


@pytest.mark.parametrize("role", ["api", "worker", "orchestrator"])
def test_a_store_for_one_process_is_refused(tmp_path, role):
    done = penstock(role, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"penstock {role}: the store sqlite:///penstock.db is for one process"
    )
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("role", ["api", "worker", "orchestrator"])
def test_redis_alone_is_not_enough(tmp_path, role):
    done = penstock(
        role, "--store", "redis://localhost:1/0", cwd=tmp_path, env={"DATABASE_URL": ""}
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "PENSTOCK_DATABASE isn't set" in done.stderr


def test_servers_that_do_not_answer_are_told_in_one_line(tmp_path):
    urls = {
        "REDIS_URL": "redis://:secret@127.0.0.1:1/0",
        "DATABASE_URL": "postgresql://u:secret@127.0.0.1:1/d",
    }
    done = penstock("worker", cwd=tmp_path, env=urls)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "127.0.0.1:1" in done.stderr
    assert "secret" not in done.stderr


def test_a_role_reads_the_applications_variables(tmp_path):
    urls = servers()
    env = {"REDIS_URL": urls["PENSTOCK_STORE"], "DATABASE_URL": urls["PENSTOCK_DATABASE"]}
    with started("orchestrator", cwd=tmp_path, env=env) as process:
        process.says("is ready")
        assert process.terminate() == 0


@pytest.mark.parametrize(
    "command", ["up", "api", "orchestrator", "worker", "migrate", "purge", "doctor"]
)
def test_help_has_an_example(command):
    done = penstock(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  penstock {command}" in done.stdout.partition("Example")[2]
