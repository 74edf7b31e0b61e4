"""The OpenAPI document, and the service checked against it.

Schemathesis does this, with every check that it has.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.caller import Caller, document, failing
from tests.api_server import running_service
from tests.sizes import explored, size

CONFIG = Path(__file__).with_name("schemathesis.toml")
METHODS = {"get", "put", "post", "delete", "patch", "options", "head", "trace"}
EXAMPLES = size(short=3, full=6)
"""For each operation, besides those at the limits of its schema."""
RUN_SECONDS = 300
"""A quiet machine needs 40."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("openapi")) as service:
        yield Caller(service.address)


def openapi(api: Caller) -> dict[str, Any]:
    answer = api.send("GET", "/openapi.json")
    assert answer.status == 200
    description: dict[str, Any] = answer.body
    return description


def operations(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By `METHOD /path`."""
    return {
        f"{method.upper()} {path}": operation
        for path, item in described["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    }


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def test_every_route_of_the_contract_is_described(api: Caller) -> None:
    described = {re.sub(r"\{[^}]*\}", "{}", name) for name in operations(openapi(api))}
    wanted = {
        "GET": "workflows workflows/{} workflows/{}/versions workflows/{}/graph "
        "executions executions/{} "
        "executions/{}/results executions/{}/nodes/{} executions/{}/nodes/{}/logs "
        "executions/{}/history "
        "executions/{}/graph executions/{}/tree "
        "executions/{}/events events me dead-letters dead-letters/{} workers "
        "orchestrators queues audit keys stats workflows/{}/stats",
        "POST": "workflows workflows/validate executions executions/batch "
        "executions/{}/cancel executions/{}/pause "
        "executions/{}/resume executions/{}/retry executions/bulk dead-letters/{}/retry "
        "dead-letters/retry "
        "dead-letters/drop keys",
        "PUT": "workflows/{}/aliases/{}",
        "DELETE": "workflows/{} workflows/{}/aliases/{} dead-letters/{} keys/{}",
    }
    missing = [
        f"{method} /api/v1/{path}"
        for method, paths in wanted.items()
        for path in paths.split()
        if f"{method} /api/v1/{path}" not in described
    ]
    assert missing == []


def test_every_operation_has_a_name_of_its_own_a_summary_and_its_errors(api: Caller) -> None:
    described = operations(openapi(api))
    names = [operation["operationId"] for operation in described.values()]
    assert len(names) == len(set(names))
    for name, operation in described.items():
        assert operation["summary"], name
        errors = {
            status: answer for status, answer in operation["responses"].items() if status >= "400"
        }
        assert {"401", "403", "429", "503"} <= errors.keys() or name.partition(" ")[2].startswith(
            "/health"
        ), name
        for status, answer in errors.items():
            assert answer["description"], (name, status)
            assert answer["content"].keys() == {"application/problem+json"}, (name, status)
        if (
            "{" in name and "/api/v1/signals/" not in name
        ):  # that names nothing which may be missing
            assert "404" in errors, name
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= errors.keys(), name


def test_every_reference_leads_somewhere(api: Caller) -> None:
    described = openapi(api)
    for reference in set(references(described)):
        part: Any = described
        for step in reference.removeprefix("#/").split("/"):
            part = part[step]


def test_the_document_is_the_same_after_every_start(api: Caller, tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        again = openapi(Caller(service.address))
    assert json.dumps(again) == json.dumps(openapi(api)), "also in its order"


@explored
@pytest.mark.timeout(RUN_SECONDS)
@pytest.mark.parametrize("phases", ["examples,coverage", "fuzzing,stateful"])
def test_the_service_does_what_the_document_says(phases: str, tmp_path: Path) -> None:
    # it makes keys too, and would be locked out by the first
    with running_service(tmp_path, require_keys="never") as service:
        seed(Caller(service.address))
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "schemathesis.cli",
                "--config-file",
                CONFIG,
                "run",
                f"{service.address}/openapi.json",
                "--phases",
                phases,
                "--checks",
                "all",
                "--max-examples",
                str(EXAMPLES),
                "--seed",
                "1",
                "--continue-on-failure",
                "--no-color",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS,
        )
    assert run.returncode == 0, run.stdout + run.stderr
    assert operations_tried(run.stdout) > 40


def seed(api: Caller) -> None:
    """Something of everything, so that there is more to find than 404."""
    for _ in range(3):
        api.ended(failing("seed"))
    api.ended(document("seed", {"a": "", "b": "a"}), labels={"team": "billing"})
    api.put("/workflows/seed/aliases/stable", {"version": 1})


def operations_tried(output: str) -> int:
    """How many operations it has tried."""
    match = re.search(r"Tested: (\d+)", output)
    assert match is not None, output
    return int(match[1])
