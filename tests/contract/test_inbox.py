"""Inboxes: in order, read from any position, trimmed to the committed position (G5).

There is no polling on the happy path.
"""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "inbox"))
