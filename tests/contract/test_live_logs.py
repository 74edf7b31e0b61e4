"""What running tasks have logged so far: shared by whoever runs them, read by anybody."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "live_logs"))
