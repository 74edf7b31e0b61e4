"""Asks again and again, in a process of its own, and writes down how long each answer took.

    python probe.py FILE ORDER

ORDER is JSON:

    {
        "health": {"worker": "http://127.0.0.1:9000"},
        "api": "http://127.0.0.1:8000",
        "key": "..."
    }

A line for each answer: what was asked, when (by the monotonic clock, which all processes share),
how many seconds it took. `machine` is a thread that only sleeps: what it oversleeps is nobody's
fault but the machine's.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import IO, Any
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.02
TICK_SECONDS = 0.005
OVERSLEPT_SECONDS = 0.005
PATIENCE_SECONDS = 60.0
LIGHT = {"name": "light", "nodes": [{"id": "a", "handler": "noop"}]}


class Asked(Exception):
    """Something else than what should have been answered."""


def ask_health(address: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", "/health/live")
        response = connection.getresponse()
        response.read()
        if response.status != http.client.OK:
            raise Asked(f"/health/live answered {response.status}")
    finally:
        connection.close()


def run_light(address: str, key: str) -> None:
    """Measure from the request to the end of its execution.

    Through the API, an orchestrator, a worker and back.
    """
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE_SECONDS)
    try:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection.request(
            "POST", "/api/v1/executions?wait=55", json.dumps({"definition": LIGHT}), headers
        )
        response = connection.getresponse()
        answer = response.read()
        if response.status != http.client.CREATED or json.loads(answer)["state"] != "COMPLETED":
            raise Asked(f"a light execution was answered with {response.status} {answer[:300]!r}")
    finally:
        connection.close()


def ask_again_and_again(name: str, ask: Callable[[], None], out: IO[str]) -> None:
    pause = threading.Event()
    while True:
        began = time.monotonic()
        try:
            ask()
            line = f"{name} {began} {time.monotonic() - began}\n"
        except (OSError, http.client.HTTPException, Asked) as error:
            problem = " ".join(f"{type(error).__name__} {error}".split())
            line = f"{name} {began} {time.monotonic() - began} {problem}\n"
        out.write(line)
        pause.wait(PAUSE_SECONDS)


def watch_machine(out: IO[str]) -> None:
    pause = threading.Event()
    before = time.monotonic()
    while True:
        pause.wait(TICK_SECONDS)
        now = time.monotonic()
        overslept = now - before - TICK_SECONDS
        if overslept > OVERSLEPT_SECONDS:
            out.write(f"machine {before} {overslept}\n")
        before = now


def main(path: str, order: dict[str, Any]) -> None:
    with open(path, "a", buffering=1, encoding="utf-8") as out:  # noqa: PTH123 -- a line at a time
        asks: dict[str, Callable[[], None]] = {
            "light": partial(run_light, order["api"], order["key"])
        }
        asks |= {name: partial(ask_health, address) for name, address in order["health"].items()}
        for name, ask in asks.items():
            threading.Thread(target=ask_again_and_again, args=(name, ask, out), daemon=True).start()
        watch_machine(out)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
