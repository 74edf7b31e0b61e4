"""Dead letters: together by what went wrong, looked into, and retried or dropped, many at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from penstock.errors import Terminal
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.ui.shop import node


class Bank:
    """Refuses every payment while it is shut."""

    def __init__(self) -> None:
        self.shut = True
        self.registry = Registry([Handler("pay", self._pay), Handler("print", self._print)])

    async def _pay(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        if self.shut:
            raise Terminal(f"payment {config['number']} refused after {config['number'] / 7:.3f} s")
        return {"paid": config["number"]}

    async def _print(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        raise ValueError("out of paper")


def paying(workflow: str) -> dict[str, Any]:
    number = {"number": "{{ input.number }}"}
    return {
        "name": workflow,
        "on_failure": "continue",  # so that both halves fail
        "nodes": [
            node("cart", "echo", config=number),
            node("left", "pay", ("cart",), config=number),
            node("right", "pay", ("cart",), config=number),
            node("ship", "noop", ("left", "right")),
        ],
    }


PRINTING = {
    "name": "printing",
    "nodes": [node("page", "print", retry={"max_attempts": 2})],
}


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def service(tmp_path: Any, bank: Bank) -> Iterator[Running]:
    with running_service(tmp_path, bank.registry) as running:
        yield running


@pytest.fixture
def caller(service: Running) -> Caller:
    return Caller(service.address)


def fail(caller: Caller, workflow: str, times: int) -> list[str]:
    """Each leaves two dead letters, one for each half of the payment."""
    caller.store(paying(workflow))
    names = [
        str(caller.ended(workflow, input={"number": number})["execution_id"])
        for number in range(times)
    ]
    assert {caller.state(name) for name in names} <= {"FAILED"}
    return names


def open_dead_letters(page: Page, caller: Caller, query: str = "") -> None:
    page.goto(f"{caller.address}/ui/dead-letters{query}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Dead letters")


def groups(page: Page) -> Locator:
    return page.locator("li.dead-letters-group")


def group_of(page: Page, text: str) -> Locator:
    return groups(page).filter(has_text=text)


def test_dead_letters_are_together_by_what_went_wrong(page: Page, caller: Caller) -> None:
    names = fail(caller, "paying", 3)
    caller.ended(PRINTING)
    dead_letters = caller.items("/dead-letters")
    open_dead_letters(page, caller)
    expect(page.get_by_role("status").filter(has_text="different")).to_have_text(
        # of two nodes and another workflow; numbers don't count
        f"{len(dead_letters)} dead letters, 3 different errors"
    )
    left = group_of(page, "paying › left")
    expect(left).to_contain_text("3 dead letters")
    expect(left).to_contain_text("payment 0 refused")  # the oldest is the example
    expect(group_of(page, "out of paper")).to_contain_text("1 dead letter")
    left.get_by_role("button", name=re.compile("refused after")).click()
    expect(left.locator("tbody tr")).to_have_count(3)
    links = left.get_by_role("link", name=re.compile("|".join(names)))
    expect(links).to_have_count(3)
    expect(page).to_have_url(re.compile(r"group=\w+"))
    page.reload()
    expect(left.locator("tbody tr")).to_have_count(3)  # it is open again
    links.first.click()
    expect(page.get_by_role("complementary", name="Node left")).to_contain_text("refused after")


def test_a_dead_letter_is_looked_into(page: Page, caller: Caller) -> None:
    caller.ended(PRINTING)
    dead_letter = caller.items("/dead-letters")[0]
    open_dead_letters(page, caller)
    group_of(page, "out of paper").get_by_role("button", name=re.compile("out of paper")).click()
    page.get_by_role("button", name=f"Inspect dead letter {dead_letter['id']}").click()
    dialog = page.get_by_role("dialog", name=f"Dead letter {dead_letter['id']}")
    expect(dialog).to_contain_text(dead_letter["execution_id"])
    expect(dialog).to_contain_text("printing@1")
    expect(dialog.locator(".dead-letters-attempts > li")).to_have_count(2)
    dialog.get_by_text("Traceback", exact=True).click()
    expect(dialog).to_contain_text('raise ValueError("out of paper")')
    expect(page).to_have_url(re.compile(f"letter={dead_letter['id']}"))
    page.go_back()
    expect(dialog).to_have_count(0)
    open_dead_letters(page, caller, f"?letter={dead_letter['id']}")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("dialog", name="Retry 1 dead letter")).to_contain_text("Runs 1")


def test_many_are_retried_at_once_after_a_preview(page: Page, caller: Caller, bank: Bank) -> None:
    names = fail(caller, "paying", 3)
    other_ids = fail(caller, "other", 1)
    open_dead_letters(page, caller)
    for text in ("paying › left", "paying › right"):
        group_of(page, text).get_by_role("checkbox", name=re.compile("Select all of")).check()
    bar = page.get_by_role("region", name="Selected dead letters")
    expect(bar).to_contain_text("6 selected")
    bar.get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("dialog", name="Retry 6 dead letters")
    expect(dialog).to_contain_text("paying 3 executions")
    expect(dialog).to_contain_text("Runs 3")
    expect(dialog).to_contain_text("Reuses 1")
    assert len(caller.items("/executions")) == 4, "a preview makes nothing"
    bank.shut = False
    dialog.get_by_role("button", name="Retry 3 executions").click()
    expect(page.get_by_text("3 executions started")).to_be_visible()
    expect(group_of(page, "paying")).to_have_count(0)
    expect(bar).to_have_count(0)
    retry_by_original = {
        item["retry_of"]: item["execution_id"]
        for item in caller.items("/executions")
        if item["retry_of"]
    }
    assert sorted(retry_by_original) == sorted(names), (
        "one new execution for each old one, though each had two dead letters"
    )
    assert {
        caller.until_state(name, "COMPLETED", "FAILED")["state"]
        for name in retry_by_original.values()
    } == {"COMPLETED"}
    closed = {
        item["id"]: item for item in caller.items("/dead-letters", closed=True) if item["closed"]
    }
    assert {item["closed"] for item in closed.values()} == {"retried"}
    assert sorted(item["execution_id"] for item in closed.values()) == sorted(names * 2)
    assert {item["execution_id"] for item in caller.items("/dead-letters")} == set(other_ids)


def test_what_was_done_with_a_dead_letter_is_shown_and_not_offered_again(
    page: Page, caller: Caller, bank: Bank
) -> None:
    fail(caller, "paying", 1)
    dead_letters = {item["node_id"]: item["id"] for item in caller.items("/dead-letters")}
    open_dead_letters(page, caller)
    expect(groups(page)).to_have_count(2)
    bank.shut = False
    assert caller.delete(f"/dead-letters/{dead_letters['left']}").status in {200, 204}
    retried = caller.post("/dead-letters/retry", {"ids": [dead_letters["right"]]}).body["items"][0][
        "execution_id"
    ]
    expect(page.get_by_text("No dead letters", exact=True)).to_be_visible()  # by itself
    page.get_by_label("Include retried and dropped").check()
    for name, done in (("left", "dropped"), ("right", "retried")):
        group = group_of(page, f"paying › {name}")
        expect(group).to_contain_text("0 dead letters + 1 closed")
        expect(group.get_by_role("button", name="Retry")).to_be_disabled()
        expect(group.get_by_role("button", name="Drop")).to_be_disabled()
        group.get_by_role("button", name=re.compile("refused after")).click()
        expect(group.locator("tbody .tag")).to_contain_text(done)
    page.get_by_role("link", name="see the retry").click()
    expect(page).to_have_url(f"{caller.address}/ui/executions/{retried}")


def test_several_are_dropped(page: Page, caller: Caller) -> None:
    names = fail(caller, "paying", 2)
    caller.ended(PRINTING)
    open_dead_letters(page, caller)
    left = group_of(page, "paying › left")
    left.get_by_role("button", name=re.compile("refused after")).click()
    expect(left.locator("tbody tr")).to_have_count(2)
    for box in left.get_by_role("checkbox", name=re.compile("Select dead letter")).all():
        box.check()
    page.get_by_role("region", name="Selected dead letters").get_by_role(
        "button", name="Drop"
    ).click()
    dialog = page.get_by_role("dialog", name="Drop 2 dead letters?")
    dialog.get_by_role("button", name="Back").click()
    expect(left).to_be_visible()
    page.get_by_role("region", name="Selected dead letters").get_by_role(
        "button", name="Drop"
    ).click()
    dialog.get_by_role("button", name="Drop 2").click()
    expect(page.get_by_text("2 dead letters dropped")).to_be_visible()
    expect(left).to_have_count(0)
    open_now = [
        (item["execution_id"] in names, item["node_id"]) for item in caller.items("/dead-letters")
    ]
    assert sorted(open_now) == [(False, "page"), (True, "right"), (True, "right")]
    dropped = [
        item for item in caller.items("/dead-letters", closed=True) if item["closed"] == "dropped"
    ]
    assert [item["node_id"] for item in dropped] == ["left", "left"]
    assert {caller.state(name) for name in names} == {"FAILED"}


def test_filters_are_in_the_address(page: Page, caller: Caller) -> None:
    fail(caller, "paying", 1)
    caller.ended(PRINTING)
    open_dead_letters(page, caller)
    expect(groups(page)).to_have_count(3)
    page.get_by_role("combobox", name="Handler").fill("print")
    expect(page).to_have_url(re.compile("handler=print"))
    expect(groups(page)).to_have_count(1)
    page.reload()
    expect(page.get_by_role("combobox", name="Handler")).to_have_value("print")
    expect(groups(page)).to_have_count(1)
    page.get_by_role("combobox", name="Workflow").fill("nobody's")
    page.get_by_role("combobox", name="Workflow").press("Enter")
    expect(page).to_have_url(re.compile("workflow=nobody"))
    expect(page.get_by_text("No dead letters match these filters")).to_be_visible()
    page.go_back()
    expect(groups(page)).to_have_count(1)
    page.go_forward()
    page.get_by_role("button", name="Show all").click()
    expect(groups(page)).to_have_count(3)


def test_where_there_are_none_the_page_says_what_they_are_and_waits(
    page: Page, caller: Caller
) -> None:
    open_dead_letters(page, caller)
    expect(
        page.get_by_text("When a node has used all its attempts, it leaves a dead letter here")
    ).to_be_visible()
    caller.ended(PRINTING)
    expect(group_of(page, "out of paper")).to_be_visible()  # by itself
