"""The Helm chart: Helm renders it, Kubernetes' schemas accept it, and it fits the program.

No cluster runs here. What KEDA and the Prometheus operator define themselves has no schema here
either, so only the fields that the chart sets are checked.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

import penstock
from penstock.cli.app import COMMANDS, cli
from penstock.config import _READERS, PREFIX, Settings
from tests.deploy.charts import (
    CHART,
    LARGEST,
    RELEASE,
    ROOT,
    SMALLEST,
    Resource,
    container_of,
    helm,
    of_kind,
    plain_environment,
    pod_of,
    refusal,
    render,
)
from tests.deploy.promql import aggregations, exposed_samples, parse, selectors

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
OLDEST_KUBERNETES, NEWEST_KUBERNETES = "1.27.0", "1.37.0"
DEFINED_ELSEWHERE = {"ScaledObject", "PodMonitor", "PrometheusRule"}
BOTH = pytest.mark.parametrize("size", ["smallest", "largest"])


@cache
def rendered(size: str) -> list[Resource]:
    return render(SMALLEST if size == "smallest" else LARGEST)


def deployments(size: str) -> dict[str, Resource]:
    return of_kind(rendered(size), "Deployment")


def with_pods(size: str) -> list[Resource]:
    return [*deployments(size).values(), *of_kind(rendered(size), "Job").values()]


@BOTH
def test_helm_finds_nothing_to_complain_about(size: str):
    ended = helm("lint", "--strict", str(CHART), values=SMALLEST if size == "smallest" else LARGEST)
    assert not ended.returncode, ended.stdout


@BOTH
@pytest.mark.parametrize("version", [OLDEST_KUBERNETES, NEWEST_KUBERNETES])
def test_kubernetes_schemas_accept_every_resource(size: str, version: str):
    checked = 0
    for resource in rendered(size):
        if resource["kind"] not in DEFINED_ELSEWHERE:
            kubernetes_validate.validate(resource, version, strict=True)
            checked += 1
    assert checked >= 8


def test_the_schemas_would_find_a_field_that_does_not_exist():
    (api, *_) = deployments("smallest").values()
    wrong = json.loads(json.dumps(api))
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, NEWEST_KUBERNETES, strict=True)


def test_there_is_a_deployment_for_each_role_and_pool():
    assert set(deployments("smallest")) == {
        f"{RELEASE}-penstock-api",
        f"{RELEASE}-penstock-orchestrator",
        f"{RELEASE}-penstock-worker-default",
    }
    pools = deployments("largest")
    assert pools[f"{RELEASE}-penstock-worker-default"]["spec"]["replicas"] == 3
    assert "replicas" not in pools[f"{RELEASE}-penstock-worker-gpu"]["spec"], (
        "an upgrade would undo what KEDA has scaled"
    )


@BOTH
def test_commands_and_their_flags_exist(size: str):
    for resource in with_pods(size):
        command, *arguments = container_of(resource)["args"]
        assert command in COMMANDS
        cli_command = cli.get_command(click.Context(cli), command)
        assert cli_command is not None
        cli_command.make_context(command, list(arguments)).close()


def test_a_pool_gets_its_handlers_queues_and_concurrency():
    pools = deployments("largest")
    gpu = container_of(pools[f"{RELEASE}-penstock-worker-gpu"])
    assert gpu["args"] == [
        *("worker", "--health-host", "0.0.0.0", "--health-port", "9000"),  # noqa: S104 -- in a pod
        *("--handlers", "app.gpu", "--queues", "gpu", "--queues", "llm.large"),
        *("--concurrency", "1"),
    ]
    assert gpu["image"] == "registry.example.com/penstock-gpu:1.2"
    other = container_of(pools[f"{RELEASE}-penstock-worker-default"])
    assert other["args"][-4:] == ["--handlers", "app.tasks", "--handlers", "app.mail"]
    assert other["image"] == "registry.example.com/penstock:1.2"


@BOTH
def test_settings_exist_and_can_be_read(size: str):
    for resource in with_pods(size):
        variables = plain_environment(container_of(resource))
        for variable, value in variables.items():
            if variable.startswith(PREFIX):
                _READERS[variable.removeprefix(PREFIX).lower()](value)


def test_settings_arrive_as_they_were_written():
    (api,) = [item for name, item in deployments("largest").items() if name.endswith("-api")]
    environment = plain_environment(container_of(api))
    settings = Settings.load({}, environment, Path("/nonexistent"))
    assert settings.waiting_tasks_max == 5_000_000
    assert settings.expression_seconds == 0.5
    assert len(settings.trusted_proxies) == 2
    assert settings.tracing


@BOTH
def test_addresses_with_passwords_come_from_the_secret_only(size: str):
    values = SMALLEST if size == "smallest" else LARGEST
    keys = {**VALUES["stores"], **values["stores"]}
    for resource in with_pods(size):
        references = {
            item["name"]: item["valueFrom"]["secretKeyRef"]
            for item in container_of(resource)["env"]
            if "valueFrom" in item
        }
        secret = keys["secret"]
        assert references["PENSTOCK_STORE"] == {"name": secret, "key": keys["storeKey"]}
        assert references["PENSTOCK_DATABASE"] == {"name": secret, "key": keys["databaseKey"]}
    assert not of_kind(rendered(size), "Secret")


@BOTH
def test_probes_ask_the_port_where_the_role_answers(size: str):
    for resource in deployments(size).values():
        container = container_of(resource)
        arguments = container["args"]
        flag = "--port" if arguments[0] == "api" else "--health-port"
        (port,) = container["ports"]
        assert port["containerPort"] == int(arguments[arguments.index(flag) + 1])
        paths = {
            probe: container[probe]["httpGet"]["path"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        assert paths == {
            "startupProbe": "/health/live",
            "livenessProbe": "/health/live",
            "readinessProbe": "/health/ready",
        }
        for probe in paths:
            assert container[probe]["httpGet"]["port"] == port["name"]


@BOTH
def test_pods_have_no_rights_and_cannot_write(size: str):
    for resource in with_pods(size):
        pod = pod_of(resource)
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod["automountServiceAccountToken"]
        container = container_of(resource)
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]  # noqa: S108
        assert container["resources"]["requests"]
        assert container["resources"]["limits"]["memory"]


@BOTH
def test_a_pod_has_more_time_to_stop_than_the_process_takes(size: str):
    for resource in deployments(size).values():
        environment = plain_environment(container_of(resource))
        seconds = int(environment["PENSTOCK_SHUTDOWN_GRACE_SECONDS"])
        assert pod_of(resource)["terminationGracePeriodSeconds"] > seconds
    gpu = deployments("largest")[f"{RELEASE}-penstock-worker-gpu"]
    assert plain_environment(container_of(gpu))["PENSTOCK_SHUTDOWN_GRACE_SECONDS"] == "600"


@BOTH
def test_each_selector_matches_the_pods_of_one_deployment(size: str):
    labels = {
        name: item["spec"]["template"]["metadata"]["labels"]
        for name, item in deployments(size).items()
    }
    for kind in ("Deployment", "PodDisruptionBudget", "Service"):
        for name, resource in of_kind(rendered(size), kind).items():
            selector = resource["spec"]["selector"]
            wanted = selector.get("matchLabels", selector).items()
            matched = {pods for pods, has in labels.items() if wanted <= has.items()}
            assert matched == {name}
    assert set(of_kind(rendered(size), "PodDisruptionBudget")) == set(labels)


@BOTH
def test_a_rolling_update_keeps_apis_and_orchestrators_complete(size: str):
    for name, resource in deployments(size).items():
        strategy = resource["spec"]["strategy"]
        assert strategy["type"] == "RollingUpdate"
        if "worker" not in name:
            assert strategy["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


@BOTH
def test_the_migration_runs_before_anything_else_and_needs_nothing_of_the_chart(size: str):
    (job,) = of_kind(rendered(size), "Job").values()
    hooks = job["metadata"]["annotations"]["helm.sh/hook"].split(",")
    assert set(hooks) == {"pre-install", "pre-upgrade"}
    pod = pod_of(job)
    assert pod["serviceAccountName"] not in of_kind(rendered(size), "ServiceAccount")
    made = set(of_kind(rendered(size), "ConfigMap"))
    assert not made & {volume.get("configMap", {}).get("name") for volume in pod["volumes"]}


def test_the_toml_is_read_from_where_it_is_mounted(tmp_path: Path):
    text = of_kind(rendered("largest"), "ConfigMap")[f"{RELEASE}-penstock"]["data"]
    (tmp_path / "penstock.toml").write_text(text["penstock.toml"], encoding="utf-8")
    assert "local" in Settings.load({}, {}, tmp_path).llm_providers
    dockerfile = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    assert "WORKDIR /home/penstock\n" in dockerfile
    mounts = [
        mount["mountPath"]
        for item in deployments("largest").values()
        for mount in container_of(item)["volumeMounts"]
        if mount["name"] == "toml"
    ]
    assert mounts == ["/home/penstock/penstock.toml"] * 4


def test_a_changed_toml_replaces_the_pods():
    def checksums(values: dict[str, Any]) -> set[str]:
        return {
            item["spec"]["template"]["metadata"]["annotations"]["checksum/toml"]
            for item in of_kind(render(values), "Deployment").values()
        }

    assert not checksums({**SMALLEST, "toml": "port = 1"}) & checksums(SMALLEST)


def test_a_pool_is_scaled_by_the_tasks_in_its_queues():
    ((name, scaled),) = of_kind(rendered("largest"), "ScaledObject").items()
    assert scaled["spec"]["scaleTargetRef"] == {"name": name}
    assert name in deployments("largest")
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (0, 8)
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["type"] == "prometheus"
    assert trigger["metadata"]["threshold"] == "2"
    query = parse(trigger["metadata"]["query"])
    used = list(selectors(query))
    assert {selector.name for selector in used} == {
        "penstock_tasks_waiting",
        "penstock_tasks_running",
    }
    for selector in used:
        assert dict(selector.matchers)["queue"] == r"gpu|llm\.large"
        assert "max" in selector.functions
    for labels, _ in aggregations(query):
        assert set(labels) <= exposed_samples()["penstock_tasks_waiting"].labels


def test_triggers_of_keda_can_be_given_as_they_are():
    trigger = {"type": "cron", "metadata": {"timezone": "UTC", "start": "0 6 * * *"}}
    pool = {"name": "night", "autoscaling": {"enabled": True, "triggers": [trigger]}}
    (scaled,) = of_kind(render({**SMALLEST, "workers": [pool]}), "ScaledObject").values()
    assert scaled["spec"]["triggers"] == [trigger]


def test_prometheus_gets_the_alerts_and_grafana_the_dashboard():
    (rule,) = of_kind(rendered("largest"), "PrometheusRule").values()
    alerts = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text(encoding="utf-8"))
    assert rule["spec"] == alerts
    dashboard = of_kind(rendered("largest"), "ConfigMap")[f"{RELEASE}-penstock-dashboard"]
    assert json.loads(dashboard["data"]["penstock.json"]) == json.loads(
        (ROOT / "deploy/grafana/penstock.json").read_text(encoding="utf-8")
    )
    (monitor,) = of_kind(rendered("largest"), "PodMonitor").values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    with_port = {
        name
        for name, item in deployments("largest").items()
        if container_of(item)["ports"][0]["name"] == endpoint["port"]
    }
    assert with_port == {name for name in deployments("largest") if not name.endswith("-api")}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "stores.secret"),
        ({**SMALLEST, "api": {"replcas": 3}}, "replcas"),
        ({**SMALLEST, "workers": [{"queues": ["a"]}]}, "name"),
        ({**SMALLEST, "workers": [{"name": "Not_A_Name"}]}, "workers.0.name"),
        ({**SMALLEST, "workers": [{"name": "a"}, {"name": "a"}]}, "two worker pools"),
        ({**SMALLEST, "settings": {"store": "redis://"}}, "settings"),
        (
            {**SMALLEST, "workers": [{"name": "a", "autoscaling": {"enabled": True}}]},
            "prometheusAddress",
        ),
        (
            {
                **SMALLEST,
                "workers": [
                    {"name": "a", "autoscaling": {"enabled": True, "prometheusAddress": "http://p"}}
                ],
            },
            "needs queues",
        ),
    ],
)
def test_wrong_values_are_refused_by_name(values: dict[str, Any], said: str):
    assert said in refusal(values)


def test_the_schema_and_the_documented_values_have_the_same_fields():
    def compare(values: Any, schema: dict[str, Any], path: str) -> None:
        fields = schema.get("properties")
        if isinstance(values, dict) and fields is not None and values:
            assert set(values) == set(fields) - {"global"}, path
            for name, value in values.items():
                compare(value, fields[name], f"{path}.{name}")

    compare(VALUES, SCHEMA, "values")


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == penstock.__version__
    assert chart["kubeVersion"] == f">={OLDEST_KUBERNETES}-0"


def test_the_commands_of_the_notes_exist():
    """Helm renders the notes only when it reaches a cluster."""
    notes = (CHART / "templates/NOTES.txt").read_text(encoding="utf-8")
    commands = [line.partition(" -- penstock ")[2] for line in notes.splitlines()]
    assert [command for command in commands if command] == ["keys create --scope admin", "doctor"]
    assert "deploy/{{ $name }}-orchestrator" in notes
    assert "service/{{ $name }}-api" in notes
