"""Running tasks, seen from outside: logs of attempts, and what each worker has claimed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.runtime.timing import EngineTiming
from penstock.worker.timing import WorkerTiming
from tests.api.caller import Caller
from tests.api.gates import GatedService, gated, gated_service
from tests.waiting import until_now

AT_ONCE = {"max_attempts": 3, "initial_delay_seconds": 0.0, "jitter_seconds": 0.0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    folder = tmp_path_factory.mktemp("live")
    timing = EngineTiming(worker=WorkerTiming(live_logs_seconds=0.01))
    with gated_service(folder, timing=timing, worker_threads=200) as running:
        yield running


def node(gate: str, **config: Any) -> dict[str, Any]:
    config = {"gate": gate, **config}
    return {
        "name": "live",
        "nodes": [{"id": "a/b", "handler": "gate", "config": config, "retry": AT_ONCE}],
    }


def logs(api: Caller, execution_id: str) -> list[tuple[int, str, bool]]:
    """Attempt, text without the time, and whether it is live."""
    answer = api.shown(f"/executions/{execution_id}/nodes/a%2Fb/logs")
    return [
        (item["attempt"], item["text"].partition(" ")[2], item["live"]) for item in answer["items"]
    ]


def test_what_an_attempt_has_logged_so_far_is_shown_while_it_runs_and_then_what_is_stored(
    server: GatedService,
) -> None:
    execution_id = server.api.start(node("one", lines=["hello"]))
    server.gates.until_asked("one")
    so_far = until_now(lambda: logs(server.api, execution_id), "a log to look at")
    assert so_far == [(1, "INFO hello at attempt 1", True)]
    server.gates.open("one")
    server.api.until_state(execution_id, "COMPLETED")
    assert logs(server.api, execution_id) == [(1, "INFO hello at attempt 1", False)]


def test_attempts_that_are_over_are_shown_beside_the_one_that_runs(server: GatedService) -> None:
    execution_id = server.api.start(node("two", lines=["hello"], fails=1))
    server.gates.open("two 1")
    server.gates.until_asked("two 2")
    expected = [(1, "INFO hello at attempt 1", False), (2, "INFO hello at attempt 2", True)]
    until_now(lambda: logs(server.api, execution_id) == expected, "both logs")
    server.gates.open("two 2")
    server.api.until_state(execution_id, "COMPLETED")
    assert [live for _, _, live in logs(server.api, execution_id)] == [False, False]


def test_a_worker_shows_what_it_holds_and_since_when_it_works(server: GatedService) -> None:
    before = time.time()
    execution_id = server.api.start(node("three"))
    server.gates.until_asked("three")
    (worker,) = server.api.items("/workers")
    began = (
        datetime.strptime(worker["started_at"], "%Y-%m-%dT%H:%M:%S.%fZ")
        .replace(tzinfo=UTC)
        .timestamp()
    )
    assert before - 60 < began < before
    (task,) = worker["tasks"]
    seconds = task.pop("seconds")
    assert task == {
        "execution_id": execution_id,
        "node_id": "a/b",
        "attempt": 1,
        "handler": "gate",
        "queue": "gate",
        "workflow": "live",
    }
    assert 0 <= seconds <= time.time() - before
    until_now(
        lambda: server.api.items("/workers")[0]["tasks"][0]["seconds"] > seconds, "time to pass"
    )
    server.gates.open("three")
    server.api.until_state(execution_id, "COMPLETED")
    assert server.api.items("/workers")[0]["tasks"] == []


def test_a_worker_shows_at_most_a_hundred_of_its_tasks(server: GatedService) -> None:
    document = gated("many", "gate")
    (written,) = document["nodes"]
    document["nodes"] = [{**written, "id": str(number)} for number in range(120)]
    execution_id = server.api.start(document)
    until_now(lambda: server.gates.passed.count("many gate") == 120, "all to wait", seconds=60)
    (worker,) = server.api.items("/workers")
    assert (worker["running"], len(worker["tasks"])) == (120, 100)
    server.gates.open("many gate")
    server.api.until_state(execution_id, "COMPLETED")
