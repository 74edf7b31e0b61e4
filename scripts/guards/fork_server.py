"""A fork server: has imported the libraries that tests need, and forks for each run of pytest.

Importing takes longer than most tests. It reads lines of JSON, {"arguments": [...], "output":
file}, and answers each with the exit code. It never imports Penstock or the tests itself: each
child reads the sources as they are then.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

LIBRARIES = (
    "pytest",
    "pytest_timeout",
    "hypothesis.strategies",
    "msgspec",
    "redis.asyncio",
    "psycopg",
    "alembic.command",
    "sqlalchemy.dialects.postgresql",
    "psutil",
    "jsonschema_rs",
    "yaml",
    "structlog",
    "prometheus_client",
    "sqlite3",
)


def main() -> None:
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _run(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(request: dict[str, Any]) -> None:
    os.setsid()
    output = os.open(Path(request["output"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(file, number)
    sys.argv = ["pytest", *request["arguments"]]
    import pytest  # noqa: PLC0415 -- is there already

    # not os._exit: servers that a test started are stopped on the way out
    sys.exit(pytest.main(request["arguments"]))


if __name__ == "__main__":
    main()
