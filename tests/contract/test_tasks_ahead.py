"""Tasks ahead: how many tasks are handed out before one that waits."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "tasks_ahead"))
