"""The task queue: a task belongs to one worker at a time, and only that one's outcome counts (G2, G4)."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "task_queue"))
