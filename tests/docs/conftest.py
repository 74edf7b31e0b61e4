"""What pages are tried with: the wheel, installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.installed import Installed, shared_venv, shared_wheel


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder of this run of pytest, the same in all of its processes."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def wheel(shared_folder: Path) -> Path:
    return shared_wheel(shared_folder)


@pytest.fixture(scope="session")
def installed(shared_folder: Path) -> Installed:
    return shared_venv(shared_folder)
