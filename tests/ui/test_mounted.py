"""The UI below a path of another web application: its files, its calls, its streams, its links."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from penstock import SyncClient
from tests.runtime.mounted import PREFIX, engine_on, in_fastapi, serving_in_a_thread

FLOW = {
    "name": "slow greeting",
    "nodes": [
        {"id": "rest", "handler": "sleep", "config": {"seconds": 2}},
        {"id": "say", "handler": "echo", "depends_on": ["rest"], "config": {"x": 1}},
    ],
}


@pytest.fixture
def address() -> Iterator[str]:
    with serving_in_a_thread(in_fastapi(engine_on())) as url:
        yield url + PREFIX


def test_an_execution_is_found_and_followed_to_its_end(page: Page, address: str) -> None:
    page.goto(address)
    expect(page).to_have_url(f"{address}/ui/")
    expect(page.locator(".overview-command pre")).to_contain_text(f"{address}/api/v1/executions")

    with SyncClient(address) as client:
        execution = client.start(FLOW)
        page.get_by_role("link", name="Executions", exact=True).click()
        expect(page).to_have_url(f"{address}/ui/executions")
        page.locator(f'a[href*="/executions/{execution.id}"]').first.click()
        expect(page).to_have_url(re.compile(f"^{re.escape(address)}/ui/executions/{execution.id}"))
        # the page follows the events, it isn't loaded again
        expect(page.get_by_text("COMPLETED").first).to_be_visible()

    page.reload()
    expect(page.get_by_text("COMPLETED").first).to_be_visible()
    page.go_back()
    expect(page).to_have_url(f"{address}/ui/executions")
