"""Finding things: search, all logs, two executions side by side, the command palette."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.shop import ORDER, SLOW, Shop


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop()


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any, shop: Shop) -> Iterator[Running]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PENSTOCK_SECRET_BANK", "canary")
    with running_service(tmp_path_factory.mktemp("finding"), shop.registry) as running:
        yield running
    patch.undo()


@pytest.fixture(scope="module")
def api(service: Running) -> Caller:
    return Caller(service.address)


@pytest.fixture(scope="module")
def failed(api: Caller) -> str:
    api.store(ORDER)
    return str(api.ended("order", input={"amount": 4711})["execution_id"])


@pytest.fixture(scope="module")
def completed(api: Caller, shop: Shop, failed: str) -> str:
    shop.broken = False
    execution = api.ended("order", input={"amount": 815}, labels={"shop": "Lyon"})
    shop.broken = True
    assert execution["state"] == "COMPLETED", failed
    return str(execution["execution_id"])


def test_errors_inputs_and_outputs_are_searched(
    page: Page, service: Running, failed: str, completed: str
) -> None:
    page.goto(f"{service.address}/ui/")
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Search").click()
    page.get_by_label("Text to search for").fill("REFUSED the card")
    matches = page.get_by_role("list", name="Matches").get_by_role("listitem")
    expect(matches).to_have_count(1)
    expect(matches.locator("mark")).to_have_text("refused the card")
    matches.get_by_role("link").click()
    expect(page).to_have_url(f"{service.address}/ui/executions/{failed}?node=pay")

    page.goto(f"{service.address}/ui/search?in=input&text=4711")
    expect(matches).to_have_count(1)
    expect(matches.locator("mark")).to_have_text("4711")
    expect(page.get_by_text("1 match in 2 executions")).to_be_visible()
    page.get_by_role("button", name="Output").click()
    expect(page.get_by_text("0 matches in 2 executions")).to_be_visible()
    page.get_by_label("Text to search for").fill('"paid":815')
    expect(matches).to_have_count(1)
    matches.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"{completed}\\?node=pay$"))


def test_all_logs_are_on_one_page_and_can_be_downloaded(
    page: Page, service: Running, completed: str
) -> None:
    page.goto(f"{service.address}/ui/executions/{completed}")
    page.get_by_role("tab", name="Logs").click()
    logs = page.locator(".run-log")
    expect(logs).to_have_count(4)
    expect(logs.first).to_contain_text("cart begins")
    page.get_by_label("Show only lines with this text").fill("BANK")
    expect(logs).to_have_count(1)
    expect(logs).to_contain_text("asks the bank for 815")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download all logs").click()
    assert download.value.suggested_filename == f"{completed}.log"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith("=== cart, attempt 1\n")
    assert "asks the bank for 815" in text
    assert "ship begins" in text


def test_logs_arrive_while_the_execution_runs(
    page: Page, service: Running, api: Caller, shop: Shop
) -> None:
    execution_id = api.start(SLOW)
    page.goto(f"{service.address}/ui/executions/{execution_id}?tab=logs")
    expect(page.locator(".run-log").filter(has_text="first")).to_contain_text("so far")
    service.call(shop.let("first", "second"))
    expect(page.locator(".run-log")).to_have_count(3)
    expect(page.locator(".run-log").filter(has_text="so far")).to_have_count(0)


def test_two_executions_are_compared(
    page: Page, service: Running, failed: str, completed: str
) -> None:
    page.goto(f"{service.address}/ui/executions/{completed}")
    page.get_by_role("button", name="Compare").click()
    dialog = page.get_by_role("dialog", name="Compare with another execution")
    dialog.get_by_role("link", name=failed[-8:]).click()
    expect(page).to_have_url(f"{service.address}/ui/compare?left={failed}&right={completed}")
    state = page.locator(".cmp-facts tr").filter(has_text="State")
    expect(state).to_have_class(re.compile("differs"))
    expect(state).to_contain_text("FAILED")
    expect(state).to_contain_text("COMPLETED")
    workflow = page.locator(".cmp-facts tr").filter(has_text="Workflow")
    expect(workflow).not_to_have_class(re.compile("differs"))

    def row(name: str) -> Any:
        return page.locator(".cmp-nodes tr").filter(
            has=page.get_by_role("rowheader", name=name, exact=True)
        )

    expect(row("cart")).to_contain_text("the same")
    expect(row("gift").locator(".cmp-mark")).to_have_count(0)
    expect(row("pay").locator(".cmp-mark").first).to_be_visible()
    row("pay").get_by_role("button", name="differs").click()
    expect(page.get_by_role("region", name="The two outputs of pay side by side")).to_contain_text(
        '"paid": 815'
    )
    inputs = page.get_by_role("region", name="The two inputs side by side")
    expect(inputs.locator("td.removed").filter(has_text="4711")).to_be_visible()
    expect(inputs.locator("td.added").filter(has_text="815")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Nodes: \d of 6 differ"))).to_be_visible()
    page.get_by_label("Only those that differ").check()
    expect(row("gift")).to_have_count(0)


def test_two_selected_executions_are_compared(
    page: Page, service: Running, failed: str, completed: str
) -> None:
    page.goto(f"{service.address}/ui/executions?workflow=order")
    for name in (failed, completed):
        page.get_by_label(f"Select execution {name}").check()
    page.get_by_role("region", name="Selected executions").get_by_role(
        "link", name="Compare"
    ).click()
    expect(page).to_have_url(re.compile(f"left={failed}&right={completed}"))


def test_the_palette_leads_to_pages_workflows_and_executions(
    page: Page, service: Running, failed: str
) -> None:
    page.goto(f"{service.address}/ui/workers")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Go to")
    expect(dialog.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("dead")
    expect(dialog.get_by_role("option")).to_have_text(re.compile("Dead letters"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{service.address}/ui/dead-letters")
    expect(dialog).to_have_count(0)

    page.keyboard.press("Control+k")
    page.keyboard.type("order")
    expect(dialog.get_by_role("option", name="order Workflow")).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{service.address}/ui/workflows/order")

    page.get_by_role("button", name="Go to (Ctrl K)").click()
    page.keyboard.type(failed[:20])
    option = dialog.get_by_role("option", name=failed)
    expect(option).to_be_visible()
    option.click()
    expect(page).to_have_url(f"{service.address}/ui/executions/{failed}")

    page.keyboard.press("Control+k")
    page.keyboard.type("nothing of this name")
    expect(dialog.get_by_text("Nothing has this in its name or id")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
