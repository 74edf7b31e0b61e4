"""Ctrl-C and its kin: the first cancels and shows the state, the second ends at once."""

import json
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.commands import (
    TIMEOUT_SECONDS,
    Terminal,
    foreign_escapes,
    nodes,
    start,
    visible,
    write,
)

HANDLERS = dedent("""
    import asyncio
    import threading

    import penstock


    @penstock.handler("linger")
    async def wait(config):
        if "ready" in config:
            open(config["ready"], "w").close()
        await asyncio.Event().wait()


    @penstock.handler("hang")
    def hang(config):
        threading.Event().wait()


    @penstock.handler("stubborn")
    async def stubborn(config):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass


    @penstock.handler("block")
    async def block(config):
        print("blocking", flush=True)
        open(config["ready"], "w").close()
        threading.Event().wait()
""")
FLAGS = ("--handlers", "handlers.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    both = nodes(
        {"id": "a", "handler": "linger"},
        {"id": "b", "handler": "hang"},
        {"id": "c", "dependencies": ["a"], "handler": "noop"},
    )
    stubborn = nodes({"id": "a", "handler": "stubborn"})
    files = {
        "handlers.py": HANDLERS,
        "waits.json": json.dumps(both),
        "stubborn.json": json.dumps(stubborn),
    }
    write(tmp_path, files)
    (tmp_path / "scratch").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_cancels_the_execution_and_shows_the_state(
    folder: Path, monkeypatch, number: int, code: int
):
    monkeypatch.setenv("TMPDIR", str(folder / "scratch"))
    with start("run", "waits.json", *FLAGS, cwd=folder) as process:
        assert process.stdout
        running = 0
        while running < 2:
            running += "  RUNNING" in process.stdout.readline().replace("execution  RUNNING", "")
        process.send_signal(number)
        out, error = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, error) == (code, "")
    assert "cancelling; Ctrl-C again ends it at once\n" in out
    assert out.endswith(": 3 cancelled\n  → It was interrupted.\n")
    assert not list((folder / "scratch").iterdir())


def test_json_is_printed_after_ctrl_c_too(folder: Path):
    ready = folder / "ready"
    write(
        folder,
        {
            "ready.json": json.dumps(
                nodes({"id": "a", "handler": "linger", "config": {"ready": str(ready)}})
            )
        },
    )
    with start("run", "ready.json", *FLAGS, "--json", cwd=folder) as process:
        wait_for_file(process, ready)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, error) == (130, "")
    assert json.loads(out)["state"] == "CANCELLED"


def wait_for_file(process, path: Path) -> None:
    while not path.exists():
        assert process.poll() is None


def test_a_second_ctrl_c_ends_at_once_even_if_the_loop_is_blocked(folder: Path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(folder / "scratch"))
    ready = folder / "ready"
    blocked = nodes({"id": "a", "handler": "block", "config": {"ready": str(ready)}})
    write(folder, {"blocks.json": json.dumps(blocked)})
    with start("run", "blocks.json", *FLAGS, cwd=folder) as process:
        wait_for_file(process, ready)
        press_until_it_ends(process)
    assert process.returncode == 130
    assert not list((folder / "scratch").iterdir())


def press_until_it_ends(process) -> None:
    """A signal just before the main thread goes to sleep is noticed with the next one."""
    for _ in range(100):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=0.1)
            return


def test_a_handler_that_swallows_its_cancellation_does_not_hold_the_process(folder: Path):
    with start("run", "stubborn.json", *FLAGS, cwd=folder) as process:
        assert process.stdout
        while "a          RUNNING" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 130
    assert "CANCELLED in" in out


def test_a_reader_that_goes_away_stops_the_run(folder: Path):
    with start("run", "waits.json", *FLAGS, cwd=folder) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(TIMEOUT_SECONDS) == 141
    assert error == ""


def test_ctrl_c_on_a_terminal_leaves_the_table_and_the_cursor(folder: Path):
    terminal = Terminal("run", "waits.json", *FLAGS, cwd=folder)
    terminal.read_until("running")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.close() == 130
    assert not foreign_escapes(terminal.screen)
    assert terminal.screen.rindex("\x1b[?25h") > terminal.screen.rindex("\x1b[?25l")
    end = visible(terminal.screen).partition("CANCELLED in")
    assert "■ cancelled  a" in end[0]
    assert "It was interrupted." in end[2]
