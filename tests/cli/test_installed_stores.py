"""Stores of other packages: found by their entry points, usable by every role and command."""

from __future__ import annotations

import asyncio
import json
import sys
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest

import penstock as api
from penstock.config import Settings
from penstock.errors import SettingsError
from penstock.runtime import open_scaled
from penstock.runtime.opening import check_shared
from penstock.stores.memory import MemoryStores
from penstock.stores.opening import open_stores
from tests.cli.commands import ROOT, call, penstock, write
from tests.cli.fleet import asked, servers, started

EXAMPLE = ROOT / "examples/store"
HELLO = str(ROOT / "examples/hello/hello.json")
FLOW = {"definition": {"name": "flow", "nodes": [{"id": "a", "handler": "noop"}]}}

SHARED = """
from penstock.stores.scaled import ScaledStores

class SharedStores(ScaledStores):
    is_shared = True

    def __init__(self, address, settings):
        super().__init__(address.replace("shared://", "redis://"), settings)
"""

IN_MEMORY = """
import time
from penstock.stores.memory import MemoryStores

def open_stores(address, settings):
    return MemoryStores(time.time)

def open_lonely(address, settings):
    return MemoryStores(time.time)

open_lonely.is_shared = True

def open_unlisted(address, settings):
    stores = MemoryStores(time.time)
    stores.commit_feed = object()
    return stores

open_unlisted.is_shared = True

def fail():
    raise ValueError("boom")

not_callable = 1
"""


def install(folder: Path, module: str, entry_points: str) -> None:
    """A package as pip would leave it there."""
    text = f"[penstock.stores]\n{entry_points}\n"
    metadata = "Metadata-Version: 2.1\nName: somebody-elses\nVersion: 1.0\n"
    info = folder / "somebody_elses-1.0.dist-info"
    info.mkdir()
    write(folder, {"somebody_elses.py": module})
    write(info, {"METADATA": metadata, "entry_points.txt": text})


@pytest.fixture
def in_memory(tmp_path, monkeypatch):
    lines = [
        "mine = somebody_elses:open_stores",
        "lonely = somebody_elses:open_lonely",
        "unlisted = somebody_elses:open_unlisted",
        "gone = not_there:open_stores",
        "odd = somebody_elses:not_callable",
        "sqlite = somebody_elses:fail",
    ]
    install(tmp_path, IN_MEMORY, "\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("somebody_elses", None)


def test_an_address_of_an_installed_store_is_a_setting_and_an_argument(in_memory):
    settings = Settings.load({}, {"PENSTOCK_STORE": "mine://anything"})
    assert settings.store == "mine://anything"
    assert isinstance(open_stores(settings.store, settings), MemoryStores)

    async def run() -> str:
        async with api.Engine("mine://here") as engine:
            execution = await engine.start(FLOW["definition"])
            return str((await execution.result()).state)

    assert asyncio.run(run()) == "COMPLETED"


def test_an_unknown_address_is_refused_with_those_that_are_installed(in_memory):
    with pytest.raises(
        SettingsError, match=r"or mine:// .*; for another store install a package that has it"
    ):
        Settings.load({"store": "nobodys://x"}, {})
    with pytest.raises(SettingsError, match=r"nobodys://u:\*\*\*@h' can't be opened; .* mine://…"):
        open_stores("nobodys://u:secret@h", Settings())


def test_a_package_does_not_take_the_place_of_our_own_stores(in_memory, tmp_path):
    stores = open_stores(f"sqlite:///{tmp_path}/own.db", Settings())
    asyncio.run(stores.close())
    assert (tmp_path / "own.db").exists()


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (
            "gone://x",
            r"the store gone:// \(not_there:open_stores\) can't be loaded: ModuleNotFoundError",
        ),
        (
            "odd://x",
            r"the store odd:// \(somebody_elses:not_callable\) is no function and no class",
        ),
    ],
)
def test_a_store_that_cannot_be_loaded_is_named(in_memory, address, text):
    with pytest.raises(SettingsError, match=text):
        open_stores(address, Settings())


def test_only_a_store_that_says_so_is_shared_by_processes(in_memory):
    with pytest.raises(SettingsError, match="mine://x is for one process"):
        check_shared(Settings(store="mine://x"))
    check_shared(Settings(store="lonely://x"))


@pytest.mark.parametrize(
    ("address", "text"),
    [("lonely://x", "has no commit feed"), ("unlisted://x", "doesn't list its workers")],
)
def test_a_shared_store_without_what_processes_share_is_refused(in_memory, address, text):
    async def enter() -> None:
        async with open_scaled(Settings(store=address)):
            pass

    with pytest.raises(SettingsError, match=text):
        asyncio.run(enter())


def test_the_roles_run_on_a_shared_store_of_another_package(tmp_path):
    install(tmp_path, SHARED, "shared = somebody_elses:SharedStores")
    env = servers()
    env["PENSTOCK_STORE"] = env["PENSTOCK_STORE"].replace("redis://", "shared://")
    env["PYTHONPATH"] = str(tmp_path)
    with ExitStack() as stack:
        roles = [
            stack.enter_context(started(*role, cwd=tmp_path, env=env))
            for role in (["worker"], ["orchestrator"], ["api", "--port", "0"])
        ]
        for role in roles:
            role.says("is ready")
        address = roles[-1].says("is ready").split(" ")[3]
        assert asked(f"{address}/api/v1/executions?wait=30", FLOW)["state"] == "COMPLETED"
        assert len(asked(f"{address}/api/v1/workers")["items"]) == 1
        assert len(asked(f"{address}/api/v1/orchestrators")["items"]) == 1
        checks = json.loads(
            penstock("doctor", "--url", address, "--json", cwd=tmp_path, env=env).stdout
        )["checks"]
        assert ("store", "ok") in {(check["check"], check["outcome"]) for check in checks}
        purged = penstock("purge", "--older-than", "1d", "--json", cwd=tmp_path, env=env)
        assert json.loads(purged.stdout)["executions"] == 0
        assert [role.terminate() for role in reversed(roles)] == [0, 0, 0]


def test_up_starts_the_roles_on_a_shared_store_and_no_servers(tmp_path):
    install(tmp_path, SHARED, "shared = somebody_elses:SharedStores")
    env = servers()
    env["PENSTOCK_STORE"] = env["PENSTOCK_STORE"].replace("redis://", "shared://")
    env["PYTHONPATH"] = str(tmp_path)
    with started(
        "up", "--port", "0", "--workers", "1", "--orchestrators", "1", cwd=tmp_path, env=env
    ) as up:
        address = up.says("Penstock is ready at ").rpartition(" ")[2]
        assert asked(f"{address}/api/v1/executions?wait=30", FLOW)["state"] == "COMPLETED"
        assert (
            tmp_path / ".penstock/env"
        ).read_text() == f"PENSTOCK_STORE='{env['PENSTOCK_STORE']}'\n"
        assert {path.name for path in (tmp_path / ".penstock").iterdir()} == {
            ".gitignore",
            "env",
            "logs",
            "up.json",
            "up.lock",
        }
        assert up.terminate() == 0


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> dict[str, str]:
    """The environment of a Python that has the package in examples/store.

    The package is installed without a network.
    """
    folder = tmp_path_factory.mktemp("example")
    built = call(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=EXAMPLE
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return {"PYTHONPATH": str(folder / "site")}


def test_commands_work_on_the_example(example, tmp_path):
    store = ("--store", "journal:///work.journal")
    done = penstock("run", HELLO, "--json", *store, cwd=tmp_path, env=example)
    assert json.loads(done.stdout)["state"] == "COMPLETED"
    refused = penstock("worker", *store, cwd=tmp_path, env=example)
    assert (refused.returncode, "is for one process" in refused.stderr) == (2, True)
    purged = penstock("purge", "--older-than", "1d", "--json", *store, cwd=tmp_path, env=example)
    assert json.loads(purged.stdout)["executions"] == 0
    env = {**example, "PENSTOCK_STORE": store[1]}
    with started("dev", "--port", "0", cwd=tmp_path, env=env) as dev:
        address = dev.says("Penstock is ready at").split(" ")[-1]
        assert [
            execution["state"] for execution in asked(f"{address}/api/v1/executions")["items"]
        ] == ["COMPLETED"]
        in_use = penstock("doctor", "--url", address, cwd=tmp_path, env=env)
        assert "is used by another process" in in_use.stdout
        assert asked(f"{address}/api/v1/executions?wait=30", FLOW)["state"] == "COMPLETED"
        assert dev.terminate() == 0
    assert (
        penstock("keys", "create", "--scope", "read", *store, cwd=tmp_path, env=example).returncode
        == 0
    )
    assert "read" in penstock("keys", "list", *store, cwd=tmp_path, env=example).stdout
