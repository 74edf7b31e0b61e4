"""A commit is all or nothing, and what is loaded is the sum of the commits."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "commit"))
