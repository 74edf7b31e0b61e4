"""docs/handlers.md names every key that the built-in handlers take."""

from __future__ import annotations

import re

import pytest

from penstock.definition.handler_configs import HANDLER_CONFIGS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "handlers.md").read_text(encoding="utf-8")
ALIASES = {"values", "data", "operation"}
"""Other names for `inputs` and `aggregate_type`, for documents of the public implementations."""


def section_of(handler: str) -> str:
    """The part of the page about a handler."""
    name = re.escape(handler.removeprefix("penstock."))
    heading = re.search(rf"^### .*`{name}`.*$", PAGE, re.MULTILINE)
    assert heading is not None, f"no section about {handler}"
    rest = PAGE[heading.end() :]
    return rest.partition("\n### ")[0]


@pytest.mark.parametrize(
    ("handler", "key"),
    [(handler, key.name) for handler, shape in HANDLER_CONFIGS.items() for key in shape.keys],
)
def test_every_key_of_a_config_is_in_its_section(handler: str, key: str):
    assert f"`{key}`" in section_of(handler) or key in ALIASES
