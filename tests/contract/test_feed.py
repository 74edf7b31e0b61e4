"""The history of one execution and the feed of all: every line once, in order, from any place on."""

from penstock.contract import contract_tests
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "feed"))
