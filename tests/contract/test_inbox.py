"""Inboxes: in order, read from any position, trimmed by what was committed, and no poll on the happy path (G5)."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "inbox"))
