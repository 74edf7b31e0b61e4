"""The same work on Celery with Redis as broker and result backend.

Prints a line of JSON for each workload.

In an environment of its own (`pip install 'celery[redis]'`), beside `python -m benchmarks.scaled`,
on a Redis with AOF everysec: `python benchmarks/peers/celery_redis.py redis://… [WORKLOAD …]`. One
worker with as many processes as there are cores. Tasks are acknowledged before they run, which is
Celery's default and its fastest.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import celery
from celery import chain, chord, group
from yardstick import (
    CHAIN,
    DIAMONDS,
    FAN,
    LIGHT,
    SUBMISSIONS,
    Measured,
    Unsupported,
    answer,
    bare,
    light,
)

PATIENCE_SECONDS = 300

app = celery.Celery(
    "celery_redis", broker=os.environ.get("BROKER"), backend=os.environ.get("BROKER")
)


@app.task
def noop(*_: Any) -> float:
    return time.time()


@app.task
def light_task(*_: Any) -> None:
    light()


def seconds_of(canvas: Any) -> float:
    began = time.time()
    canvas.apply_async().get(timeout=PATIENCE_SECONDS)
    return time.time() - began


def diamond() -> Any:
    return chain(noop.s(), chord(group(noop.s(), noop.s()), noop.s()))


def run_chain() -> Measured:
    return Measured(seconds_of(chain(*(noop.s() for _ in range(CHAIN)))), CHAIN)


def run_fan() -> Measured:
    return Measured(
        seconds_of(chain(noop.s(), chord(group(noop.s() for _ in range(FAN)), noop.s()))), 1
    )


def run_diamonds() -> Measured:
    """Until the last task ran, by its own clock: fetching the results isn't counted."""
    began = time.time()
    results = [diamond().apply_async() for _ in range(DIAMONDS)]
    return Measured(
        max(result.get(timeout=PATIENCE_SECONDS) for result in results) - began, DIAMONDS
    )


def run_layers() -> Measured:
    raise Unsupported("canvas has barriers between groups, not edges between nodes")


def run_latency() -> Measured:
    waits = []
    for _ in range(SUBMISSIONS):
        began = time.time()
        waits.append(noop.delay().get(timeout=PATIENCE_SECONDS) - began)
    return Measured(statistics.median(waits) * SUBMISSIONS, SUBMISSIONS)


def run_light() -> Measured:
    return Measured(seconds_of(chain(*(light_task.s() for _ in range(LIGHT)))) - bare(), LIGHT)


WORK = {
    "chain": run_chain,
    "fan": run_fan,
    "diamonds": run_diamonds,
    "layers": run_layers,
    "latency": run_latency,
    "light": run_light,
}


def main() -> None:
    url, *names = sys.argv[1:]
    os.environ["BROKER"] = app.conf.broker_url = app.conf.result_backend = url
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "celery_redis",
        "worker",
        "--loglevel",
        "ERROR",
    ]
    worker = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.DEVNULL)
    try:
        diamond().apply_async().get(timeout=PATIENCE_SECONDS)  # the worker is up, and warm
        answer(celery.__version__, WORK, names)
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main()
