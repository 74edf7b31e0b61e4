"""`penstock up`: servers and all roles as processes, from one command."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
from contextlib import suppress
from pathlib import Path

import psutil

from penstock.cli.up_folder import UpFolder
from tests.cli.commands import penstock, write
from tests.cli.fleet import Started, asked, servers, started
from tests.servers import open_folder
from tests.waiting import until_now

HANDLERS = (
    "import penstock\n@penstock.handler('greet')\n"
    "def greet(config):\n    return {'text': 'hello'}\n"
)
FLOW = {"definition": {"name": "flow", "nodes": [{"id": "a", "handler": "greet"}]}}
SMALL = ("--port", "0", "--workers", "1", "--orchestrators", "1", "--handlers", "handlers.py")
ALONE = {"REDIS_URL": "", "DATABASE_URL": ""}


def address_of(up: Started) -> str:
    return up.says("Penstock is ready at ").rpartition(" ")[2]


def below(up: Started) -> list[psutil.Process]:
    return psutil.Process(up.process.pid).children(recursive=True)


def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Without those that are dead and that nobody has asked about."""
    alive = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # also one that ends while it is looked at
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def role(up: Started, name: str) -> psutil.Process:
    return next(
        process for process in below(up) if process.cmdline()[1:4] == ["-m", "penstock", name]
    )


def open_to_others(folder: Path) -> set[str]:
    """Names of files that another account can get at and read."""
    readable = set()
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if (Path(parent) / name).stat().st_mode & 0o011]
        readable |= {name for name in files if (Path(parent) / name).stat().st_mode & 0o044}
    return readable


def test_a_workflow_runs_and_is_there_after_the_next_start():
    with open_folder() as folder:
        write(folder, {"handlers.py": HANDLERS})
        with started("up", *SMALL, cwd=folder, env=ALONE) as up:
            ended = asked(f"{address_of(up)}/api/v1/executions?wait=30", FLOW)
            assert ended["state"] == "COMPLETED"
            assert stat.S_IMODE((folder / ".penstock" / "env").stat().st_mode) == 0o600
            assert open_to_others(folder / ".penstock") == {"port", ".gitignore"}, (
                "data and logs are for this account only"
            )
            processes = below(up)
            assert up.terminate() == 0
            assert "stopped; the data stay in .penstock" in up.output
            assert not living(processes)
        with started("up", *SMALL, cwd=folder, env=ALONE) as up:
            again = asked(f"{address_of(up)}/api/v1/executions/{ended['execution_id']}")
            assert again["nodes"]["a"]["output"] == {"text": "hello"}
            assert up.terminate() == 0


def test_what_ends_is_started_again(tmp_path):
    write(tmp_path, {"handlers.py": HANDLERS})
    with started("up", *SMALL, cwd=tmp_path, env=servers()) as up:
        address = address_of(up)
        first = role(up, "worker")
        first.kill()
        up.says("worker-1 ended with code 137; it is restarted")
        until_now(
            lambda: any(
                worker["worker_id"].split("-")[1] != str(first.pid)
                for worker in asked(f"{address}/api/v1/workers")["items"]
            )
        )
        assert asked(f"{address}/api/v1/executions?wait=30", FLOW)["state"] == "COMPLETED"
        assert up.terminate() == 0


def test_nothing_is_left_when_it_is_killed(tmp_path):
    write(tmp_path, {"handlers.py": HANDLERS})
    with started("up", *SMALL, cwd=tmp_path, env=servers()) as up:
        address_of(up)
        processes = below(up)
        assert len(processes) > 3
        up.process.send_signal(signal.SIGKILL)
        up.ends()
        until_now(lambda: not living(processes))


def test_a_handler_that_cannot_be_imported_is_told(tmp_path):
    write(tmp_path, {"handlers.py": "import not_there\n"})
    env = servers()
    done = penstock("up", *SMALL, cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert re.search(
        r"penstock up: \S+-1 ended with code 2\..*No module named 'not_there'", done.stderr
    )


def test_one_folder_is_for_one_of_them(tmp_path):
    write(tmp_path, {"handlers.py": HANDLERS})
    env = servers()
    with started("up", *SMALL, cwd=tmp_path, env=env) as up:
        address_of(up)
        done = penstock("up", *SMALL, cwd=tmp_path, env=env)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert "another 'penstock up' runs in .penstock" in done.stderr
        assert up.terminate() == 0


def test_it_goes_on_in_the_background_until_it_is_told_to_stop(tmp_path):
    write(tmp_path, {"handlers.py": HANDLERS})
    env = servers()
    done = penstock("up", *SMALL, "--detach", "--json", cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    state = json.loads(done.stdout)
    try:
        assert (state["workers"], state["orchestrators"], state["apis"]) == (1, 1, 1)
        ended = asked(f"{state['url']}/api/v1/executions?wait=30", FLOW)
        assert ended["state"] == "COMPLETED"
        second = penstock("up", *SMALL, "--detach", cwd=tmp_path, env=env)
        assert second.returncode == 2
        assert "another 'penstock up' runs in .penstock; 'penstock down' stops it" in second.stderr
        processes = [
            psutil.Process(state["pid"]),
            *psutil.Process(state["pid"]).children(recursive=True),
        ]
    finally:
        stopped = penstock("down", cwd=tmp_path)
    assert (stopped.returncode, stopped.stdout) == (0, "stopped; the data stay in .penstock\n")
    until_now(lambda: not living(processes))
    assert (tmp_path / ".penstock" / ".gitignore").read_text().splitlines()[-1] == "*"
    again = penstock("down", "--json", cwd=tmp_path)
    assert json.loads(again.stdout) == {"folder": ".penstock", "stopped": False}


def test_what_fails_in_the_background_is_told_in_front(tmp_path):
    write(tmp_path, {"handlers.py": "import not_there\n"})
    done = penstock("up", *SMALL, "--detach", cwd=tmp_path, env=servers())
    assert (done.returncode, done.stdout) == (2, "")
    assert "No module named 'not_there'" in done.stderr


def test_a_folder_that_was_there_before_is_not_hidden_from_git(tmp_path):
    folder = UpFolder(str(tmp_path))
    folder.make()
    assert not (tmp_path / ".gitignore").exists()
    UpFolder(str(tmp_path / "new")).make()
    assert (tmp_path / "new" / ".gitignore").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    done = penstock("up", "--folder", "file/here", cwd=tmp_path, env=servers())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
