"""The task queue: a task belongs to one worker at a time (G2, G4).

Only that worker's outcome counts.
"""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "task_queue"))
