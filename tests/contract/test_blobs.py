"""Large values, kept apart."""

from penstock.contract import contract_tests
from tests.contract.suite import OBJECT_STORES, STORES

globals().update(contract_tests({**STORES, **OBJECT_STORES}, "blobs"))
