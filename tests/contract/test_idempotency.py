"""Idempotency keys: the same request twice is one execution."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "idempotency"))
