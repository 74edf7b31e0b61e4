"""Finding a node's box in a drawn graph."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page


def box(page: Page, name: str) -> Locator:
    return page.locator(".node-box", has=page.get_by_text(name, exact=True))


def having(name: str) -> re.Pattern[str]:
    """Among the classes of an element."""
    return re.compile(rf"(^|\s){name}(\s|$)")
