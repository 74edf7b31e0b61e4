"""Retention: old executions go with everything that belongs to them.

These are the ones that ended, or were never triggered, long ago. Nothing else goes.
"""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "forgetting"))
