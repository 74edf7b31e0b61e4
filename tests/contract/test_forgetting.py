"""Retention: what ended, or was never triggered, long ago goes with all that is its own; nothing else does."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "forgetting"))
