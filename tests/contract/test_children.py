"""What commits send to other executions, on every store."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "children"))
