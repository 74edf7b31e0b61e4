"""Priorities in the task queue.

The highest first, and within one priority first come, first served.
"""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "priority"))
