"""A real S3 server for the tests of one process.

`rclone serve s3`, from its wheel, on a folder of its own.
"""

from __future__ import annotations

import atexit
import itertools
import os
import socket
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from penstock.local.ports import free_port
from penstock.local.process import Process
from penstock.stores.object_blobs import ObjectBlobs
from tests.servers import open_folder
from tests.waiting import until_now

BUCKET = "penstock"
KEY_ID, SECRET = "penstock-tests", "made-up-for-the-tests"
_numbers = itertools.count(1)


def bucket_url() -> str:
    """An empty folder of a bucket. Clients find the server by the environment of this process."""
    _start()
    return f"s3://{BUCKET}/values-{next(_numbers)}"


def object_blobs() -> ObjectBlobs:
    return ObjectBlobs(bucket_url())


@cache
def _start() -> None:
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(open_folder())
    port = free_port()
    buckets = folder / "buckets"
    (buckets / BUCKET).mkdir(parents=True)  # a folder in what it shows is a bucket
    rclone = Path(sys.executable).parent / "rclone"
    command: list[str | Path] = [
        rclone,
        "serve",
        "s3",
        "--auth-key",
        f"{KEY_ID},{SECRET}",
        "--addr",
        f"127.0.0.1:{port}",
        buckets,
    ]
    server = Process(
        command, folder / "log", environ={**os.environ, "RCLONE_CONFIG": str(folder / "none.conf")}
    )
    stack.callback(server.kill)
    until_now(lambda: _listens(port), "the S3 server listens")
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
    os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"] = KEY_ID, SECRET
    os.environ["AWS_REGION"] = "us-east-1"


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
