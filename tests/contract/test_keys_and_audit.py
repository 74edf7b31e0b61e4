"""API keys and the audit log."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "keys_and_audit"))
