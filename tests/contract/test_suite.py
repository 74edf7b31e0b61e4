"""The shipped suite itself: nothing of it is left out, and it says what it needs."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import penstock.contract
from penstock.contract import TOPICS, contract_tests

PACKAGE = Path(penstock.contract.__file__).parent
TEST = re.compile(r"^async def (test_\w+)", re.MULTILINE)


def test_every_test_of_the_package_is_in_the_suite():
    written = [
        name
        for path in PACKAGE.glob("*.py")
        for name in TEST.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(written) == len(set(written)), (
        "in one file of tests the later of one name would hide the earlier"
    )
    assert set(written) == contract_tests({}).keys()


def test_every_topic_runs_on_our_stores():
    files = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    run = {
        topic
        for text in files
        for topic in re.findall(r'contract_tests\(.*STORES.*, "(\w+)"\)', text)
    }
    assert run == set(TOPICS)


def test_a_failed_assert_shows_its_values():
    contract_tests({}, "leases")
    loader = import_module("penstock.contract.leases").__loader__
    assert type(loader).__name__ == "AssertionRewritingHook"


def test_an_unknown_topic_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="no topic 'leased'; it has blobs, cold, "):
        contract_tests({}, "leased")


def test_without_pytest_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytest", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'penstock[contract]'")):
        contract_tests({})
