"""Times are the viewer's, with UTC beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.shop import node

QUICK = {"name": "quick", "nodes": [node("a", "noop")]}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("times")) as running:
        yield running


@pytest.fixture(scope="module")
def execution(service: Running) -> dict[str, Any]:
    return Caller(service.address).ended(QUICK)


def both(at: str, zone: str) -> tuple[str, str]:
    """The clock in this zone, and the moment in UTC as the page writes it."""
    moment = datetime.fromisoformat(at)
    return moment.astimezone(ZoneInfo(zone)).strftime("%H:%M:%S"), at.replace("T", " ").replace(
        "Z", " UTC"
    )


def test_a_time_has_the_viewers_zone_and_utc_in_its_title(
    page: Page, service: Running, execution: Any
) -> None:
    name = execution["execution_id"]
    for path, field in (("/executions", "started_at"), (f"/executions/{name}", "created_at")):
        local, utc = both(execution[field], "Europe/Berlin")
        page.goto(f"{service.address}/ui{path}")
        time_element = page.locator(f'time[datetime="{execution[field]}"]').first
        expect(time_element).to_have_text(re.compile("just now|ago"))
        first, second = (time_element.get_attribute("title") or "").splitlines()
        assert local in first
        assert first.endswith(("CET", "CEST"))
        assert second == utc


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "America/St_Johns"])
def test_the_history_is_on_the_viewers_clock(
    browser: Browser, service: Running, execution: Any, zone: str
) -> None:
    first = Caller(service.address).items(f"/executions/{execution['execution_id']}/history")[0]
    local, utc = both(first["at"], zone)
    context = browser.new_context(locale="en-GB", timezone_id=zone)
    page = context.new_page()
    page.goto(f"{service.address}/ui/executions/{execution['execution_id']}?tab=history")
    time_element = page.locator("tbody time").first
    expect(time_element).to_contain_text(local)
    first_line, second_line = (time_element.get_attribute("title") or "").splitlines()
    assert local in first_line
    assert second_line == utc
    context.close()
