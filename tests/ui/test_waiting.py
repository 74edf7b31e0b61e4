"""What waits in the UI: clocks, why, and signals that are sent by a form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.boxes import box
from tests.ui.shop import Shop, node

SCHEMA = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number"}}}
PAID = {
    "names": ["paid", "refused"],
    "correlation": "order-7",
    "schema": SCHEMA,
    "timeout_seconds": 86_400,
}
ORDER = {
    "name": "order",
    "nodes": [
        node("paid", "signal", config=PAID),
        node("nap", "wait", config={"seconds": 7200}),
        node("flaky", "fail", retry={"initial_delay_seconds": 3600, "max_delay_seconds": 3600}),
        node("ship", "noop", ("paid",)),
    ],
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("waiting"), Shop().registry) as running:
        yield running


@pytest.fixture
def api(service: Running) -> Caller:
    return Caller(service.address)


def open_node(page: Page, api: Caller, execution_id: str, node_id: str) -> Locator:
    page.goto(f"{api.address}/ui/executions/{execution_id}?node={node_id}")
    return page.get_by_role("complementary", name=f"Node {node_id}")


def why(panel: Locator) -> Locator:
    return panel.get_by_role("region", name="Why it isn't running")


def test_what_waits_has_a_clock_and_says_why(page: Page, api: Caller) -> None:
    execution_id = api.start(ORDER)
    page.goto(f"{api.address}/ui/executions/{execution_id}")
    expect(box(page, "nap")).to_contain_text("1 h 59 min")
    expect(box(page, "paid")).to_contain_text("23 h 59 min")
    expect(box(page, "flaky")).to_contain_text("59 min")
    texts = {
        "nap": r"1 h 59 min.*It waits, until \d+ \w+ \d{4}",
        "paid": "It waits for the signal paid or refused with the correlation 'order-7'",
        "flaky": "Attempt 2 of 4 starts at .*failed on purpose",
        "ship": r"It waits for paid \(WAITING\)",
    }
    for node_id, text in texts.items():
        panel = open_node(page, api, execution_id, node_id)
        expect(why(panel)).to_contain_text(re.compile(text))
    api.post(f"/executions/{execution_id}/cancel")


def test_a_clock_appears_when_a_node_begins_to_wait(page: Page, api: Caller) -> None:
    nodes = [
        node("go", "signal", config={"name": "go"}),
        node("nap", "wait", ("go",), config={"seconds": 7200}),
    ]
    execution_id = api.start({"name": "late", "nodes": nodes})
    page.goto(f"{api.address}/ui/executions/{execution_id}")
    expect(box(page, "nap")).not_to_contain_text("min")
    api.post(f"/executions/{execution_id}/signals/go")
    expect(box(page, "nap")).to_contain_text("1 h 59 min")
    api.post(f"/executions/{execution_id}/cancel")
    expect(box(page, "nap")).not_to_contain_text("min")


def test_a_signal_is_sent_by_its_form_and_the_node_goes_on(page: Page, api: Caller) -> None:
    execution_id = api.start(ORDER)
    api.post(f"/executions/{execution_id}/signals/early", {"payload": {"n": 1}})
    panel = open_node(page, api, execution_id, "paid")
    expect(why(panel)).to_contain_text("early")  # kept, and not for this node
    form = panel.get_by_role("form", name="Send a signal")
    expect(form.get_by_label("Name")).to_have_value("paid")
    expect(form.get_by_label("Correlation")).to_have_value("order-7")
    payload = form.get_by_label("Payload")
    send = form.get_by_role("button", name="Send")

    payload.fill("{amount")
    send.click()
    expect(form.get_by_role("alert")).to_contain_text("This isn't JSON")
    payload.fill('{"amount": "much"}')
    send.click()
    expect(form.get_by_role("alert")).to_contain_text("amount: ")
    expect(payload).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Name").fill(" paid\u0007")
    send.click()
    expect(form.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Name").fill("refused")
    payload.fill('{"amount": 9007199254740993}')
    send.click()

    expect(page.get_by_text("Signal 2 was sent: a node that waits takes it.")).to_be_visible()
    expect(box(page, "ship")).to_have_class(re.compile("state-completed"))
    page.get_by_role("tab", name="Signals").click()
    main = page.get_by_role("tabpanel", name="Signals")
    expect(main.get_by_role("listitem").filter(has_text="refused")).to_contain_text("taken by paid")
    expect(main.get_by_role("listitem").filter(has_text="early")).to_contain_text("kept")
    signal = api.items(f"/executions/{execution_id}/signals")[-1]
    assert signal["payload"] == {"amount": 9007199254740993}, "no digit is lost"
    api.post(f"/executions/{execution_id}/cancel")
    expect(main.get_by_role("listitem").filter(has_text="early")).to_contain_text("unused")
    expect(page.get_by_role("form", name="Send a signal")).to_have_count(0)


def test_a_retry_says_what_waits_again(page: Page, api: Caller) -> None:
    execution_id = api.start(ORDER)
    api.post(f"/executions/{execution_id}/signals/paid", {"correlation": "else"})
    api.post(f"/executions/{execution_id}/cancel")
    api.until_state(execution_id, "CANCELLED")
    page.goto(f"{api.address}/ui/executions/{execution_id}?retry=yes")
    details = page.get_by_role("list", name="What runs in detail")
    expect(details).to_contain_text("paid waits again for paid or refused")
