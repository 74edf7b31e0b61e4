"""Approvals in the UI: the inbox with its badge, forms from a schema, and who was first."""

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

FORM = {
    "type": "object",
    "required": ["tone", "copies"],
    "properties": {
        "tone": {"enum": ["warm", "plain"]},
        "copies": {"type": "integer", "minimum": 1, "maximum": 5},
        "send_on": {"type": "string", "format": "date"},
        "urgent": {"type": "boolean"},
        "note": {"type": "string", "pattern": "^[^#]*$"},
        "extra": {"anyOf": [{"type": "string"}, {"type": "number"}]},
    },
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(tmp_path_factory.mktemp("approvals"), Shop().registry) as running:
        yield running


@pytest.fixture
def api(service: Running) -> Iterator[Caller]:
    """Nothing is left to decide after a test."""
    caller = Caller(service.address)
    yield caller
    for item in caller.items("/approvals"):
        caller.post(f"/executions/{item['execution_id']}/cancel")
        caller.until_state(item["execution_id"], "CANCELLED")


def letter(title: str = "Send this letter?", **config: Any) -> dict[str, Any]:
    release = {"title": title, "text": "Dear Ada,\n<b>hello</b>", "comment": "on_reject", **config}
    nodes = [
        node("release", "approval", config=release),
        node("send", "echo", ("release",), config={"form": "{{ release.form }}"}),
    ]
    return {"name": "letter", "nodes": nodes}


def open_inbox(page: Page, api: Caller) -> None:
    page.goto(f"{api.address}/ui/approvals")


def card(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title)


def badge(page: Page) -> Locator:
    link = page.get_by_role("navigation", name="Sections").get_by_role("link", name="Approvals")
    return link.locator(".section-count")


def output_of(api: Caller, execution_id: str, node_id: str) -> Any:
    return api.shown(f"/executions/{execution_id}/nodes/{node_id}")["output"]


def test_an_approval_is_given_through_the_form_of_its_schema(page: Page, api: Caller) -> None:
    execution_id = api.start(letter(form=FORM, expires_seconds=86_400))
    open_inbox(page, api)
    approval = card(page, "Send this letter?")
    expect(approval).to_contain_text("<b>hello</b>")  # as text
    expect(approval).to_contain_text("23 h 59 min")
    expect(badge(page)).to_have_text("1 to decide")
    approve = approval.get_by_role("button", name="Approve")
    approve.click()
    expect(approval).to_contain_text("Choose one")
    expect(approval.get_by_label("tone")).to_be_focused()

    approval.get_by_label("tone").select_option("warm")
    approval.get_by_label("copies").fill("9")
    approve.click()
    expect(approval).to_contain_text("It must be at most 5")
    approval.get_by_label("copies").fill("2")
    approval.get_by_label("send_on").fill("2027-01-31")
    approval.get_by_label("urgent").select_option("true")
    approval.get_by_label("note").fill("be quick")
    approval.get_by_label("extra").fill('"anything"')
    approval.get_by_label("Comment").fill("well done")
    approval.get_by_label("Your name").fill("Ada")
    approve.click()
    expect(page.get_by_text("Approved: Send this letter?")).to_be_visible()
    expect(page.get_by_text("Nothing to decide")).to_be_visible()
    expect(badge(page)).to_have_count(0)
    api.until_state(execution_id, "COMPLETED")
    decided = output_of(api, execution_id, "release")
    assert (decided["decision"], decided["by"], decided["comment"]) == (
        "approved",
        "Ada",
        "well done",
    )
    assert decided["form"] == {
        "tone": "warm",
        "copies": 2,
        "send_on": "2027-01-31",
        "urgent": True,
        "note": "be quick",
        "extra": "anything",
    }


def test_a_rejection_wants_a_comment_and_no_form(page: Page, api: Caller) -> None:
    execution_id = api.start(letter(form=FORM))
    page.goto(f"{api.address}/ui/executions/{execution_id}?node=release")
    panel = page.get_by_role("complementary", name="Node release")
    reject = panel.get_by_role("button", name="Reject")
    reject.click()
    expect(panel.get_by_role("alert")).to_have_text("A comment is needed")
    panel.get_by_label("Comment").fill("too cold")
    reject.click()
    expect(box(page, "release")).to_have_class(re.compile("state-completed"))
    api.until_state(execution_id, "COMPLETED")
    assert output_of(api, execution_id, "release")["comment"] == "too cold"


def test_what_only_the_server_refuses_is_shown_at_its_field(page: Page, api: Caller) -> None:
    form = {
        "type": "object",
        "properties": {"from": {"type": "integer"}, "note": {"type": "string"}},
        "dependentRequired": {"from": ["note"]},
        "if": {"required": ["from"]},
        "then": {"properties": {"note": {"maxLength": 3}}},
    }
    api.start(letter("By JSON", form=form))
    open_inbox(page, api)
    approval = card(page, "By JSON")
    approval.get_by_label("Form").fill("{no")
    approval.get_by_role("button", name="Approve").click()
    expect(approval).to_contain_text("This isn't JSON")
    approval.get_by_label("Form").fill('{"from": 1, "note": "much too long"}')
    approval.get_by_role("button", name="Approve").click()
    expect(approval.get_by_label("Form")).to_have_attribute("aria-invalid", "true")
    approval.get_by_label("Form").fill("{}")
    approval.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Nothing to decide")).to_be_visible()


def test_whoever_is_second_is_told_who_was_first_and_when(page: Page, api: Caller) -> None:
    execution_id = api.start(letter())
    open_inbox(page, api)
    approval = card(page, "Send this letter?")
    expect(approval).to_be_visible()
    # the inbox of this page doesn't hear of the decision any more
    page.route("**/api/v1/approvals*", lambda route: route.abort())
    answer = api.post(
        f"/executions/{execution_id}/approvals/release", {"decision": "approved", "by": "Bo"}
    )
    assert answer.status == 200
    approval.get_by_role("button", name="Approve").click()
    toast = page.locator(".toast.failed")
    expect(toast).to_contain_text("Send this letter?: ")
    expect(toast).to_contain_text(re.compile(r"approved by Bo.* \d+ \w+ \d{4}"))
    page.unroute("**/api/v1/approvals*")
    expect(page.get_by_text("Nothing to decide")).to_be_visible()
    expect(toast).to_be_visible()  # until it is dismissed


def test_an_approval_for_others_is_shown_only_on_request_and_without_a_form(
    page: Page, api: Caller
) -> None:
    api.start(letter("Mine"))
    api.start(letter("Theirs", approvers={"keys": ["key_of_somebody"]}))
    open_inbox(page, api)
    expect(card(page, "Mine")).to_be_visible()
    expect(card(page, "Theirs")).to_have_count(0)
    expect(badge(page)).to_have_text("1 to decide")
    page.get_by_label("Include those that others decide").check()
    theirs = card(page, "Theirs")
    theirs.get_by_role("button", name="Theirs").click()
    expect(theirs).to_contain_text("Dear Ada")
    expect(theirs.get_by_role("button", name="Approve")).to_have_count(0)
    card(page, "Mine").get_by_role("link").click()
    expect(page.get_by_role("complementary", name="Node release")).to_be_visible()


def test_each_item_of_a_map_has_an_approval_of_its_own(page: Page, api: Caller) -> None:
    nodes = [{"id": "each", "for_each": [1, 2], "handler": "approval", "config": {"title": "Go?"}}]
    execution_id = api.start({"name": "many", "nodes": nodes})
    open_inbox(page, api)
    second = card(page, "Go?").filter(has_text="each[1]")
    second.get_by_role("button", name="Go?").click()
    second.get_by_role("button", name="Approve").click()
    expect(second).to_have_count(0)
    page.goto(f"{api.address}/ui/executions/{execution_id}?node=each[0]")
    page.get_by_role("complementary").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
