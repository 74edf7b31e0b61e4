"""Executions in the cold store: intents, control requests, what has ended."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "cold"))
