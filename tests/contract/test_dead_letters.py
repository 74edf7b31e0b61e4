"""Dead letters: found by what failed, closed once."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "dead_letters"))
