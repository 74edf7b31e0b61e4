"""Executions that wait for their trigger: stored, and not to be run before it."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "triggering"))
