"""Counting executions for charts.

Counts agree with a search, and no store counts more than it was asked to.
"""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "counts"))
