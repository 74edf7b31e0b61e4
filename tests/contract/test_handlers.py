"""A worker gets only tasks whose handler it has; what nobody takes can be taken back."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "handlers"))
