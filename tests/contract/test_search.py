"""Searching executions: every filter, alone and with others, page by page."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "search"))
