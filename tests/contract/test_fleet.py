"""The fleet: membership of orchestrators, and what a shared store shows of all processes."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "fleet"))
