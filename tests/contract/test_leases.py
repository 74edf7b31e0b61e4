"""One owner per partition: whoever holds the newest lease, and nobody else, may commit (G2, G4)."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "leases"))
