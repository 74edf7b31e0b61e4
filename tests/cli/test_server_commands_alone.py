"""The commands that talk to a server, without one: help, refusals, `doctor`."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from penstock.stores.sqlite import SqliteStores
from tests.cli.commands import penstock

COMMANDS = [
    ["submit", "ok"],
    ["list"],
    ["show", "x"],
    ["watch", "x"],
    ["results", "x"],
    ["cancel", "x"],
    ["pause", "x"],
    ["resume", "x"],
    ["retry", "x"],
    ["dlq", "list"],
    ["dlq", "show", "1"],
    ["dlq", "retry", "1"],
    ["dlq", "drop", "1"],
    ["workers"],
    ["versions"],
    ["alias", "set", "a", "b", "1"],
    ["alias", "remove", "a", "b"],
]


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_server_each_says_what_to_do(command: list[str], nobody: str, tmp_path: Path):
    done = penstock(*command, "--url", nobody, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"penstock {command[0]}: no server answers at {nobody}; "
        "start one with 'penstock dev', or name another with"
        " --url or PENSTOCK_URL\n"
    )


@pytest.mark.parametrize("command", [*COMMANDS, ["dlq"], ["alias"], ["doctor"]], ids=" ".join)
def test_help_has_an_example(command: list[str]):
    names = [word for word in command[:2] if word.isalpha() and word not in {"ok", "x"}]
    done = penstock(*names, "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"\n    penstock {' '.join(names)}" in done.stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["submit", "missing.json"], "missing.json: there is no such file"),
        (["submit", "ok", "--input", "[1]"], "--input: the input must be an object"),
        (["submit", "ok", "--label", "x"], "--label x: write it as NAME=VALUE"),
        (
            ["list", "--url", "localhost:8000"],
            "'localhost:8000' is not the address of a server; write it as http://HOST:PORT",
        ),
        (["list", "--state", "LOST"], "'LOST' is not one of"),
        (["alias", "set", "a", "b", "3=x"], "a version such as 3, or shares such as 3=90,4=10"),
    ],
)
def test_what_cannot_be_used_is_refused_before_a_server_is_asked(
    command: list[str], message: str, tmp_path: Path
):
    done = penstock(*command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_doctor_makes_no_file_and_hides_secrets(tmp_path: Path):
    environ = {
        "PENSTOCK_STORE": "sqlite:///work.db",
        "PENSTOCK_LLM_API_KEY": "hush-hush",
        "PENSTOCK_PORT": "9999",
    }
    done = penstock("doctor", "--json", cwd=tmp_path, env=environ)
    report = json.loads(done.stdout)
    checks = {check["check"]: check["text"] for check in report["checks"]}
    assert "doesn't exist yet" in checks["store"]
    assert report["settings"]["port"] == 9999
    assert "hush-hush" not in done.stdout
    assert not list(tmp_path.iterdir())


def test_doctor_fails_where_something_is_wrong(tmp_path: Path, nobody: str):
    lost = penstock("doctor", "--url", nobody, cwd=tmp_path)
    assert lost.returncode == 1
    assert "server    failed   no server answers at" in lost.stdout
    folder = penstock("doctor", cwd=tmp_path, env={"PENSTOCK_STORE": "sqlite:///no/where.db"})
    assert folder.returncode == 1
    assert "doesn't exist; create it" in folder.stdout
    setting = penstock("doctor", cwd=tmp_path, env={"PENSTOCK_PORT": "x"})
    assert (setting.returncode, setting.stdout) == (2, "")
    assert "PENSTOCK_PORT is 'x'" in setting.stderr


def test_doctor_opens_a_store_that_is_there(tmp_path: Path):
    asyncio.run(SqliteStores(tmp_path / "work.db").close())
    done = penstock("doctor", cwd=tmp_path, env={"PENSTOCK_STORE": "sqlite:///work.db"})
    assert "sqlite:///work.db can be opened; nobody else uses it" in done.stdout


def test_doctor_names_the_files_of_a_store_that_others_may_read(tmp_path: Path):
    store = tmp_path / "work.db"
    asyncio.run(SqliteStores(store).close())
    (tmp_path / "other.db").touch(mode=0o644)
    assert _files_of_doctor(tmp_path) == ("ok", "only this account may read the store's files")
    store.chmod(0o644)  # as earlier versions made it
    assert _files_of_doctor(tmp_path) == (
        "note",
        "other users of this machine may read work.db; forbid it with chmod go-rwx",
    )


def _files_of_doctor(folder: Path) -> tuple[str, str]:
    done = penstock("doctor", "--json", cwd=folder, env={"PENSTOCK_STORE": "sqlite:///work.db"})
    assert done.returncode == 0
    checks = {
        check["check"]: (check["outcome"], check["text"])
        for check in json.loads(done.stdout)["checks"]
    }
    return checks["files"]
