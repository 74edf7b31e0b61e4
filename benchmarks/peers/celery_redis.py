"""The same diamonds and chain on Celery with Redis as broker and result backend, as a line of JSON.

In an environment of its own (`pip install 'celery[redis]'`), beside `python -m benchmarks.scaled`, on a Redis with
AOF everysec: `python benchmarks/peers/celery_redis.py redis://…`. One worker with as many processes as there are cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import celery
from celery import chain, chord, group

DIAMONDS = 300
HOPS = 300

app = celery.Celery("celery_redis", broker=os.environ.get("BROKER"), backend=os.environ.get("BROKER"))


@app.task
def noop(*_: Any) -> float:
    return time.time()


def diamond() -> Any:
    return chain(noop.s(), chord(group(noop.s(), noop.s()), noop.s()))


def measure() -> dict[str, Any]:
    diamond().apply_async().get(timeout=30)
    began = time.time()
    results = [diamond().apply_async() for _ in range(DIAMONDS)]
    ends = [result.get(timeout=120) for result in results]
    seconds = max(ends) - began
    began = time.time()
    chain(*(noop.s() for _ in range(HOPS))).apply_async().get(timeout=120)
    return {
        "celery": celery.__version__,
        "diamonds_per_second": DIAMONDS / seconds,
        "hop_ms_mean": (time.time() - began) / HOPS * 1000,
    }


def main() -> None:
    os.environ["BROKER"] = app.conf.broker_url = app.conf.result_backend = sys.argv[1]
    command = [sys.executable, "-m", "celery", "-A", "celery_redis", "worker", "--loglevel", "ERROR"]
    worker = subprocess.Popen(command, cwd=Path(__file__).parent)
    try:
        time.sleep(5)
        print(json.dumps(measure()))
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main()
