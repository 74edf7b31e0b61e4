"""`penstock dev --reload`: handlers change while it runs.

A mistake in a file is corrected by saving the file again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from tests.cli.commands import Terminal, start
from tests.cli.serving import READY

HANDLERS = """\
import penstock

@penstock.handler("say")
def say(config, ctx):
    return "{word}"
"""
DOCUMENT = {"nodes": [{"id": "a", "handler": "say"}]}


def said(address: str) -> Any:
    body = json.dumps({"definition": DOCUMENT}).encode()
    request = urllib.request.Request(  # noqa: S310 -- our own service
        f"{address}/api/v1/executions?wait=20", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return json.load(answer)["output"]["a"]


def next_address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = next(line for line in process.stdout if READY in line)
    return line.removeprefix(READY).strip()


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    assert next(line for line in process.stderr if words in line)


def test_a_changed_file_is_served_without_a_new_start_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "handlers.py"
    file.write_text(HANDLERS.format(word="first"), encoding="utf-8")
    with start(
        "dev", "--reload", "--port", "0", "--handlers", "handlers.py", cwd=tmp_path
    ) as process:
        try:
            assert said(next_address(process)) == "first"
            file.write_text(HANDLERS.format(word="second, longer"), encoding="utf-8")
            assert said(next_address(process)) == "second, longer"
            file.write_text("this is not Python", encoding="utf-8")
            wait_for(process, "waiting for a change")
            file.write_text(HANDLERS.format(word="mended"), encoding="utf-8")
            assert said(next_address(process)) == "mended"
        finally:
            process.terminate()
            output, _ = process.communicate(timeout=30)
    assert process.returncode == 0, output


def test_ctrl_c_in_the_terminal_stops_it_cleanly(tmp_path: Path) -> None:
    terminal = Terminal("dev", "--reload", "--port", "0", cwd=tmp_path, columns=200)
    terminal.read_until("Ctrl-C stops it.")
    # As a terminal does it: all processes of the group in front get the signal.
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.close() == 0
    assert "stopped" in terminal.screen
    assert "Traceback" not in terminal.screen


def test_a_port_that_is_in_use_ends_it_when_told(tmp_path: Path) -> None:
    with start("dev", "--port", "0", "--store", "memory://", cwd=tmp_path) as first:
        try:
            port = next_address(first).rpartition(":")[2]
            with start(
                "dev", "--reload", "--port", port, "--store", "memory://", cwd=tmp_path
            ) as second:
                wait_for(second, "waiting for a change")
                second.terminate()
                assert second.wait(timeout=30) == 2
        finally:
            first.terminate()
            first.communicate(timeout=30)
