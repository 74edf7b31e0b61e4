"""The clients are imported when they are used, and not before."""

import subprocess
import sys


def loaded(code: str) -> set[str]:
    script = f"import sys, penstock\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_penstock_imports_neither_client_nor_server():
    assert not {"aiohttp", "starlette", "uvicorn", "rich", "penstock.client"} & loaded("")


def test_a_client_is_there_when_it_is_named():
    assert {"aiohttp", "penstock.client"} <= loaded("penstock.Client, penstock.SyncClient")
