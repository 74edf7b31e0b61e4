"""The history of one execution, and the commit feed.

Every line comes once, in order, from any cursor on.
"""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "feed"))
