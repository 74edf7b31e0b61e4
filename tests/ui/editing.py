"""The editor of workflows, as a user works with it."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Locator, Page


def text_box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Workflow document")


def paste(page: Page, document: Any) -> None:
    """Replace the whole text by this one."""
    text = document if isinstance(document, str) else json.dumps(document, indent=2)
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    text_box(page).click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Control+V")
