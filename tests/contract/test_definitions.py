"""Definitions: versions by content, aliases, what is deleted and what comes back."""

import pytest

from penstock.contract import contract_tests
from penstock.definition.model import HandlerDefaults
from penstock.stores.handlers import decoded, encoded
from tests.contract.suite import STORES

globals().update(contract_tests(STORES, "definitions"))


def test_what_cannot_be_read_about_one_handler_leaves_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gpu = HandlerDefaults(queue="gpu")
    rows = [*encoded({"good": gpu}), ("bad", b"\xc1"), ("newer", b"\x81\xa5color\xa3red")]
    assert decoded(rows) == {"good": gpu, "bad": HandlerDefaults(), "newer": HandlerDefaults()}
    assert [record.getMessage() for record in caplog.records if "'bad'" in record.getMessage()]
