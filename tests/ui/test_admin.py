"""API keys and the audit log: who may do what, and who did what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.conftest import fresh_context


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One for each test: a key that is kept must not be there for the next."""
    with fresh_context(browser) as new_context:
        yield new_context


@pytest.fixture
def service(tmp_path: Any) -> Iterator[Running]:
    with running_service(tmp_path) as running:
        yield running


def test_the_first_key_signs_its_maker_in(page: Page, service: Running) -> None:
    page.goto(f"{service.address}/ui/api-keys")
    expect(page.get_by_text("There is no API key yet")).to_be_visible()
    page.get_by_role("button", name="Create a key").click()
    dialog = page.get_by_role("dialog", name="Create a key")
    dialog.get_by_label("Name").fill("boss")
    expect(dialog.get_by_text("Create one with the scope admin first")).to_be_visible()
    dialog.get_by_label(re.compile("^admin")).check()
    dialog.get_by_role("button", name="Create").click()
    shown = page.get_by_role("dialog", name="The new key")
    expect(shown.locator("code")).to_have_text(re.compile(r"^pk_"))
    shown.get_by_role("button", name="Done").click()
    expect(page.get_by_role("cell", name="boss", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()

    page.get_by_role("button", name="Create a key").click()
    dialog.get_by_label("Name").fill("robot")
    dialog.get_by_role("button", name="Create").click()
    robot = shown.locator("code").inner_text()
    shown.get_by_role("button", name="Done").click()
    row = page.get_by_role("row").filter(has_text="robot")
    expect(row).to_contain_text("submit")
    headers = {"Authorization": f"Bearer {robot}"}
    api = Caller(service.address)
    assert api.call("GET", "/me", headers=headers).status == 200
    row.get_by_role("button", name="Revoke robot").click()
    page.get_by_role("button", name="Revoke the key").click()
    expect(row.get_by_role("button")).to_have_count(0)
    assert api.call("GET", "/me", headers=headers).status == 401

    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Audit log").click()
    lines = page.locator("tbody tr")
    expect(lines.filter(has_text="revoke_key")).to_contain_text("boss")
    page.get_by_label("Action, such as put_workflow").fill("create_key")
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("robot")


def test_a_key_without_the_scope_is_not_offered_the_pages(page: Page, service: Running) -> None:
    api = Caller(service.address)
    key = api.post("/keys", {"name": "reader", "scopes": ["read"]}).body["key"]
    page.goto(f"{service.address}/ui/")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    sections = page.get_by_role("navigation", name="Sections")
    expect(sections.get_by_role("link", name="Search")).to_be_visible()
    expect(sections.get_by_role("link", name="API keys")).to_have_count(0)
    expect(sections.get_by_role("link", name="Audit log")).to_have_count(0)
    page.goto(f"{service.address}/ui/api-keys")
    expect(page.get_by_role("alert")).to_contain_text("admin")


def test_a_line_leads_to_what_was_changed(page: Page, service: Running) -> None:
    api = Caller(service.address)
    api.store({"name": "noted", "nodes": [{"id": "a", "handler": "noop"}]})
    page.goto(f"{service.address}/ui/audit?object=workflows/noted")
    page.get_by_role("link", name="workflows/noted").click()
    expect(page).to_have_url(f"{service.address}/ui/workflows/noted")
    expect(page.get_by_role("heading", name="noted")).to_be_visible()
