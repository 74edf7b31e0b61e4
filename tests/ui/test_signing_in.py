"""API keys: a user without one signs in.

What a key doesn't allow isn't offered, and is refused by the server anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.conftest import fresh_context
from tests.ui.shop import ORDER, SLOW, Shop


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One for each test: a key that is kept must not be there for the next."""
    with fresh_context(browser) as new_context:
        yield new_context


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    return {}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any, keys: dict[str, str]) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("keys")
    with running_service(
        folder, Shop().registry, require_keys="never"
    ) as first:  # on loopback, to make the keys
        for scope in ("read", "submit", "operate"):
            api_key = Caller(first.address).post(
                "/keys", {"name": f"{scope} key", "scopes": [scope]}
            )
            keys[scope] = api_key.body["key"]
    with running_service(folder, Shop().registry, host="0.0.0.0") as running:  # noqa: S104 -- what keys are for
        running.address = running.address.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        yield running


def sign_in(page: Page, service: Running, key: str, path: str = "/") -> None:
    page.goto(f"{service.address}/ui{path}")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_without_a_key_there_is_only_the_login(page: Page, service: Running) -> None:
    page.goto(f"{service.address}/ui/executions")
    expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()
    expect(page.get_by_role("navigation", name="Sections")).to_have_count(0)


def test_a_wrong_key_is_refused_with_a_reason(page: Page, service: Running) -> None:
    sign_in(page, service, "psk_nobody_has_this_one")
    expect(page.get_by_role("alert")).to_contain_text("is unknown or has been revoked")
    assert page.evaluate("Object.keys(sessionStorage).concat(Object.keys(localStorage))") == []


def test_a_key_that_may_only_read_is_offered_nothing_else(
    page: Page, service: Running, keys: dict[str, str]
) -> None:
    operator = {"Authorization": f"Bearer {keys['operate']}"}
    caller = Caller(service.address)
    caller.post("/workflows", SLOW, operator)
    started = caller.post("/executions", {"workflow": "slow"}, operator)
    sign_in(page, service, keys["read"], f"/executions/{started.body['execution_id']}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("RUNNING")
    expect(page.locator(".node-box.state-running")).to_have_count(1)  # live events need the key too
    for name in ("Cancel", "Pause", "Retry"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    answer = caller.post(
        f"/executions/{started.body['execution_id']}/cancel",
        None,
        {"Authorization": f"Bearer {keys['read']}"},
    )
    assert answer.status == 403
    page.get_by_role("link", name="Workflows", exact=True).click()
    expect(page.get_by_role("link", name="slow")).to_be_visible()
    expect(page.get_by_role("button", name="Start")).to_have_count(0)


def test_an_operator_is_offered_it_and_signs_out(
    page: Page, service: Running, keys: dict[str, str]
) -> None:
    operator = {"Authorization": f"Bearer {keys['operate']}"}
    caller = Caller(service.address)
    caller.post("/workflows", ORDER, operator)
    answer = caller.post(
        "/executions", {"workflow": "order", "input": {"amount": 1}}, operator, wait=20
    )
    sign_in(page, service, keys["operate"], f"/executions/{answer.body['execution_id']}")
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    assert page.evaluate("localStorage.getItem('penstock.key')") is None, (
        "kept for this tab unless asked otherwise"
    )
    page.reload()
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('penstock.key')") is None


def test_a_key_that_is_revoked_leads_back_to_the_login(
    page: Page, service: Running, keys: dict[str, str]
) -> None:
    sign_in(page, service, keys["submit"])
    expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
    assert service.engine is not None
    listed = service.call(service.engine.service.stores.cold.api_keys.keys())
    revoked = next(key.id for key in listed if key.name == "submit key")
    service.call(service.engine.service.keys.revoke(revoked))
    expect(
        page.get_by_role("heading", name="Sign in to Penstock")
    ).to_be_visible()  # the next look says so
