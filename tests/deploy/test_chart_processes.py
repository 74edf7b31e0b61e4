"""What the chart's pods would run, as processes on real servers: they start, and can be replaced.

There is no cluster: this test does what Kubernetes would do with the rendered Deployments. It
starts the migration, then a process for each Deployment, asks the probes, and replaces them as a
rolling update does: the new one must be ready before the old one gets SIGTERM.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fleet import Started, started
from tests.deploy.charts import Resource, container_of, of_kind, plain_environment, render
from tests.servers import bare_database_url, redis_url
from tests.waiting import until_now

TASKS = """
import penstock


@penstock.handler("double")
def double(config, ctx):
    return {"number": 2 * config["number"]}
"""
FLOW = {
    "name": "twice",
    "nodes": [
        {"id": "first", "handler": "double", "config": {"number": "{{ input.number }}"}},
        {
            "id": "second",
            "handler": "double",
            "depends_on": ["first"],
            "config": {"number": "{{ first.number }}"},
        },
    ],
}
VALUES = {
    "stores": {"secret": "servers"},
    "workers": [{"name": "default", "handlers": ["tasks.py"], "concurrency": 4}],
    "migrate": {"partitions": 4},
}
ADDRESS = re.compile(r"http://[\w.]+:(\d+)")
EXECUTIONS = 4


class Cluster:
    """Runs containers of the chart as processes in one folder."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._secret = {"store": redis_url(), "database": bare_database_url()}
        self.key = ""

    def environment(self, container: dict[str, Any]) -> dict[str, str]:
        variables = plain_environment(container)
        for item in container["env"]:
            if "valueFrom" in item:
                reference = item["valueFrom"]["secretKeyRef"]
                assert reference["name"] == "servers"
                variables[item["name"]] = self._secret[reference["key"]]
        return variables

    def run(self, container: dict[str, Any], *arguments: str) -> Started:
        process = started(
            *(arguments or container["args"]), cwd=self._folder, env=self.environment(container)
        )
        return self._stack.enter_context(process)

    def start(self, deployment: Resource) -> tuple[Started, str]:
        """A process on a free port, once its probes succeed, and its address."""
        container = container_of(deployment)
        (port,) = container["ports"]
        arguments = [
            "0" if argument == str(port["containerPort"]) else argument
            for argument in container["args"]
        ]
        process = self.run(container, *arguments)
        listens = "health and metrics at" if port["name"] == "health" else "is ready"
        number = ADDRESS.search(process.says(listens))
        assert number
        address = f"http://127.0.0.1:{number[1]}"
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            path = container[probe]["httpGet"]["path"]
            until_now(_is_ok(address + path), f"{path} of {container['name']}", seconds=30)
        return process, address

    def call(self, address: str, body: Any) -> Any:
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)


def _is_ok(address: str) -> Callable[[], bool]:
    def is_ok() -> bool:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False

    return is_ok


@pytest.mark.timeout(240)
def test_the_pods_of_the_chart_start_and_are_replaced_without_a_failure(tmp_path: Path):
    (tmp_path / "tasks.py").write_text(TASKS, encoding="utf-8")
    resources = render(VALUES)
    (job,) = of_kind(resources, "Job").values()
    roles = {container_of(item)["name"]: item for item in of_kind(resources, "Deployment").values()}

    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        migration = cluster.run(container_of(job))
        assert migration.ends() == 0, migration.output

        running = {name: cluster.start(roles[name]) for name in ("orchestrator", "worker")}
        keys = cluster.run(
            container_of(roles["orchestrator"]), "keys", "create", "--scope", "submit"
        )
        assert keys.ends() == 0, keys.output
        cluster.key = next(line for line in keys.output.splitlines() if line.startswith("pk_"))
        running["api"] = cluster.start(roles["api"])

        numbers = iter(range(10_000))

        def submit() -> None:
            number = next(numbers)
            body = {"definition": FLOW, "input": {"number": number}}
            answer = cluster.call(f"{running['api'][1]}/api/v1/executions?wait=30", body)
            assert answer["state"] == "COMPLETED"
            assert answer["output"] == {"second": {"number": 4 * number}}

        submit()
        # The order of docs/upgrading.md.
        for name in ("orchestrator", "worker", "api"):
            old, _ = running[name]
            running[name] = cluster.start(roles[name])
            submit()
            old.process.terminate()
            for _ in range(EXECUTIONS):
                submit()
            assert old.ends() == 0, old.output
