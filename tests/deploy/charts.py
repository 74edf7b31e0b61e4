"""Renders the Helm chart, and reads what a pod would run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart"
RELEASE = "shop"
PATIENCE_SECONDS = 60

SMALLEST: dict[str, Any] = {"stores": {"secret": "penstock-stores"}}
LARGEST: dict[str, Any] = {
    "image": {"repository": "registry.example.com/penstock", "tag": "1.2"},
    "imagePullSecrets": [{"name": "registry"}],
    "stores": {"secret": "penstock-stores", "storeKey": "redis", "databaseKey": "postgres"},
    "settings": {
        "retention_days": 30,
        "waiting_tasks_max": 5_000_000,
        "expression_seconds": 0.5,
        "trusted_proxies": ["10.0.0.0/8", "192.168.0.1"],
        "tracing": True,
    },
    "toml": '[llm.providers.local]\nbase_url = "http://ollama:11434/v1"\n',
    "env": [
        {
            "name": "PENSTOCK_SECRET_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": "mine", "key": "token"}},
        }
    ],
    "envFrom": [{"secretRef": {"name": "llm-keys"}}],
    "workers": [
        {"name": "default", "handlers": ["app.tasks", "app.mail"], "replicas": 3},
        {
            "name": "gpu",
            "handlers": ["app.gpu"],
            "queues": ["gpu", "llm.large"],
            "concurrency": 1,
            "shutdownGraceSeconds": 600,
            "image": {"repository": "registry.example.com/penstock-gpu"},
            "nodeSelector": {"accelerator": "a100"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "podAnnotations": {"team": "vision"},
            "env": [{"name": "CUDA", "value": "1"}],
            "autoscaling": {
                "enabled": True,
                "minReplicas": 0,
                "maxReplicas": 8,
                "tasksPerReplica": 2,
                "prometheusAddress": "http://prometheus:9090",
                "matchers": 'job=~".*penstock.*"',
            },
        },
    ],
    "migrate": {"partitions": 32},
    "serviceAccount": {"annotations": {"iam": "role"}},
    "service": {"annotations": {"a": "b"}},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "annotations": {"a": "b"},
        "hosts": ["penstock.example.com"],
        "tls": [{"secretName": "tls", "hosts": ["penstock.example.com"]}],
    },
    "monitoring": {
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "alerts": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboard": {"enabled": True},
    },
    "volumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "volumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
}
"""Everything that can be set at once."""

Resource = dict[str, Any]


def helm(*arguments: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """Call Helm: from the development lock, or the one on PATH where that has none."""
    beside = Path(sys.executable).parent / "helm"
    program = str(beside) if beside.exists() else shutil.which("helm")
    assert program, "there is no helm: install Helm 3.17 or newer"
    return subprocess.run(
        [program, *arguments, "--values", "-"],
        input=yaml.safe_dump(dict(values)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def render(values: Mapping[str, Any], *arguments: str) -> list[Resource]:
    ended = helm("template", RELEASE, str(CHART), *arguments, values=values)
    assert not ended.returncode, ended.stderr
    return [resource for resource in yaml.safe_load_all(ended.stdout) if resource]


def refusal(values: Mapping[str, Any]) -> str:
    ended = helm("template", RELEASE, str(CHART), values=values)
    assert ended.returncode, "it was rendered"
    return ended.stderr


def of_kind(resources: list[Resource], kind: str) -> dict[str, Resource]:
    return {
        resource["metadata"]["name"]: resource for resource in resources if resource["kind"] == kind
    }


def pod_of(resource: Resource) -> dict[str, Any]:
    spec: dict[str, Any] = resource["spec"]["template"]["spec"]
    return spec


def container_of(resource: Resource) -> dict[str, Any]:
    (container,) = pod_of(resource)["containers"]
    assert isinstance(container, dict)
    return container


def plain_environment(container: Mapping[str, Any]) -> dict[str, str]:
    """The variables whose values stand in the chart."""
    return {item["name"]: item["value"] for item in container["env"] if "value" in item}
