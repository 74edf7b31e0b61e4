"""The UI and a server that goes away.

The UI says so, comes back by itself, and has missed nothing.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.api.caller import Caller
from tests.waiting import until_now

READY = "Penstock is ready at "
STEPS = 8


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def penstock(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")
    }
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "penstock",
            "dev",
            "--port",
            str(port),
            "--store",
            f"sqlite:///{folder / 'work.db'}",
        ],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(READY)
        try:
            yield process
        finally:
            process.kill()


def test_a_killed_server_is_waited_for_and_the_run_is_seen_to_its_end(
    page: Page, tmp_path: Path
) -> None:
    port = free_port()
    caller = Caller(f"http://127.0.0.1:{port}")
    nodes = [
        {
            "id": f"s{n}",
            "handler": "sleep",
            "config": {"seconds": 0.8},
            "dependencies": [f"s{n - 1}"] if n else [],
        }
        for n in range(STEPS)
    ]
    with penstock(tmp_path, port) as first:
        name = caller.start({"name": "long", "nodes": nodes})
        page.goto(f"{caller.address}/ui/executions/{name}")
        expect(page.locator(".node-box.state-completed").first).to_be_visible()
        first.send_signal(signal.SIGKILL)
        first.wait()
        expect(page.get_by_text("The server can't be reached")).to_be_visible()
    with penstock(tmp_path, port):
        expect(page.get_by_text("The server can't be reached")).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED", timeout=40_000)
        expect(page.locator(".node-box.state-completed")).to_have_count(STEPS)
        page.get_by_role("tab", name="History").click()
        expect(page.locator("tbody tr").last).to_contain_text("COMPLETED")
        shown_numbers = [
            int(text) for text in page.locator("tbody tr td:first-child").all_inner_texts()
        ]
        stored = [item["seq"] for item in caller.items(f"/executions/{name}/history")]
        assert shown_numbers == stored


def test_lists_go_on_after_a_restart(page: Page, tmp_path: Path) -> None:
    port = free_port()
    caller = Caller(f"http://127.0.0.1:{port}")
    noop = {"name": "quick", "nodes": [{"id": "a", "handler": "noop"}]}
    with penstock(tmp_path, port) as first:
        caller.ended(noop)
        page.goto(f"{caller.address}/ui/executions")
        expect(page.get_by_role("link", name=re.compile("quick")).first).to_be_visible()
        first.terminate()
        first.wait()
    with penstock(tmp_path, port):
        before = page.get_by_role("link", name=re.compile("quick")).count()
        caller.ended(noop)
        until_now(
            lambda: page.get_by_role("link", name=re.compile("quick")).count() > before,
            "the new one is listed",
        )
