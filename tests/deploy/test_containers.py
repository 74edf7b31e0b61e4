"""The files for containers fit the program.

No Docker engine runs here, so this is what can be tested about them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from penstock.cli.app import COMMANDS, cli
from penstock.config import _READERS, PREFIX

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load(
    (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
)
OURS = {
    name: definition
    for name, definition in COMPOSE["services"].items()
    if definition["image"].startswith("penstock")
}
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    lines = [
        line
        for line in DOCKERFILE.replace("\\\n", "").splitlines()
        if line and not line.startswith("#")
    ]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def test_the_services_that_were_promised_are_there():
    replicas = {
        name: definition.get("deploy", {}).get("replicas", 1)
        for name, definition in COMPOSE["services"].items()
    }
    assert replicas == {
        "redis": 1,
        "postgres": 1,
        "migrate": 1,
        "api": 2,
        "orchestrator": 2,
        "worker": 3,
    }


@pytest.mark.parametrize("name", sorted(OURS))
def test_commands_and_their_flags_exist(name):
    command, *arguments = OURS[name]["command"]
    assert command in COMMANDS
    cli_command = cli.get_command(click.Context(cli), command)
    assert cli_command is not None
    cli_command.make_context(command, list(arguments), resilient_parsing=False).close()


@pytest.mark.parametrize("name", sorted(OURS))
def test_settings_exist_and_can_be_read(name):
    for variable, value in OURS[name]["environment"].items():
        if variable.startswith(PREFIX):
            _READERS[variable.removeprefix(PREFIX).lower()](
                re.sub(r"\$\{\w+:\?[^}]*\}", "secret", value)
            )


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_health_check_asks_where_the_role_answers(name):
    service = OURS[name]
    if "disable" in service.get("healthcheck", {}):
        return
    arguments = service["command"]
    port = arguments[arguments.index("--port" if name == "api" else "--health-port") + 1]
    assert service["environment"]["HEALTH_URL"] == f"http://127.0.0.1:{port}/health/live"


def test_roles_start_after_the_migration_and_it_after_the_servers():
    for name, service in OURS.items():
        wanted = {"redis", "postgres"} if name == "migrate" else {"migrate"}
        assert set(service["depends_on"]) == wanted
    conditions = {definition["condition"] for definition in OURS["migrate"]["depends_on"].values()}
    assert conditions == {"service_healthy"}
    assert OURS["api"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_redis_keeps_what_it_is_told():
    command = " ".join(COMPOSE["services"]["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command
    for name in ("redis", "postgres"):
        assert COMPOSE["services"][name]["volumes"][0].partition(":")[0] in COMPOSE["volumes"]
        assert "ports" not in COMPOSE["services"][name]


def test_there_is_no_secret_with_a_default():
    text = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    named = re.findall(r"\$\{(\w+)([^}]*)\}", text)
    assert named
    assert all(rest.startswith(":?") for _, rest in named)


def test_the_time_to_stop_is_longer_than_the_grace_period():
    for service in OURS.values():
        seconds = int(service["stop_grace_period"].removesuffix("s"))
        assert seconds > int(service["environment"]["PENSTOCK_SHUTDOWN_GRACE_SECONDS"])


def test_the_image_is_built_in_stages_and_runs_without_rights():
    names = [name for name, _ in instructions()]
    allowed = {
        "FROM",
        "WORKDIR",
        "RUN",
        "ENV",
        "COPY",
        "USER",
        "EXPOSE",
        "HEALTHCHECK",
        "STOPSIGNAL",
        "ENTRYPOINT",
        "CMD",
    }
    assert set(names) <= allowed
    assert names.count("FROM") == 2
    final = instructions()[len(names) - names[::-1].index("FROM") - 1 :]
    users = [rest for name, rest in final if name == "USER"]
    assert users == ["10001"]
    assert ("ENTRYPOINT", '["penstock"]') in final
    assert "HEALTHCHECK" in dict(final)
    assert "--from=build" in dict(final)["COPY"]


def test_what_the_image_copies_is_there_and_not_ignored():
    allowed = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    for name, rest in instructions():
        if name == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source in allowed


def test_the_lock_has_what_the_image_needs():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for package in ("hatchling", "redis", "psycopg", "sqlalchemy", "alembic", "hiredis"):
        assert re.search(rf"^{package}==", lock, re.MULTILINE), package
