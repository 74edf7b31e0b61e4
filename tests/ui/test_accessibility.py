"""Every page by the rules of axe in light and dark, on a narrow screen, and by keys alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.api.caller import Caller, failing, segment
from tests.api_server import Running, running_service
from tests.ui.boxes import box
from tests.ui.editing import paste
from tests.ui.shop import ORDER, SLOW, Shop, node
from tests.waiting import until_now

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
GRAVE = {"serious", "critical"}
LONG = "a_rather_long_name_that_nobody_could_break_into_two_" * 2
WIDE: ViewportSize = {"width": 1440, "height": 900}
NARROW: ViewportSize = {"width": 400, "height": 800}
TABS_MAX = 80


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop()


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any, shop: Shop) -> Iterator[Running]:
    patch = pytest.MonkeyPatch()
    patch.setenv("PENSTOCK_SECRET_BANK", "canary")
    with running_service(tmp_path_factory.mktemp("accessibility"), shop.registry) as running:
        yield running
    patch.undo()


@pytest.fixture(scope="module")
def paths(service: Running, shop: Shop) -> dict[str, str]:
    """The path of every page, with something of each kind on it."""
    caller = Caller(service.address)
    caller.store({"name": "order", "nodes": [node("cart")]})
    caller.store(ORDER)
    failed = caller.ended(ORDER, input={"amount": 5}, labels={"team": "billing", LONG: LONG})[
        "execution_id"
    ]
    long = failing(
        f"{LONG}/of a workflow", message=f"{LONG} is out of order, {'and says so ' * 20}"
    )
    caller.store(long)
    caller.ended(long)
    running = caller.start(SLOW)
    until_now(lambda: "first" in shop.began)
    assert caller.put("/workflows/order/aliases/stable", {"version": 1}).status in {200, 201}
    path_by_name = {
        "overview": "/",
        "executions": "/executions",
        "no executions": "/executions?workflow=nobody",
        "running": f"/executions/{running}?node=first",
        "graph": f"/executions/{failed}?node=pay",
        "time": f"/executions/{failed}?tab=time&node=pay",
        "nodes": f"/executions/{failed}?tab=nodes&node=pay",
        "logs": f"/executions/{failed}?tab=logs&node=pay",
        "history": f"/executions/{failed}?tab=history&node=pay",
        "values": f"/executions/{failed}?tab=values&node=pay",
        "retry": f"/executions/{failed}?retry=yes",
        "workflows": "/workflows",
        "long workflow": f"/workflows/{segment(f'{LONG}/of a workflow')}",
        "letters": "/dead-letters",
        "workers": "/workers",
        "new workflow": "/edit",
        "edit": "/edit/order",
        "search": "/search?text=bank",
        "search input": "/search?in=input&text=amount",
        "search output": "/search?in=output&text=items",
        "no search": "/search",
        "compare": f"/compare?left={failed}&right={running}",
        "no compare": "/compare",
        "keys": "/api-keys",
        "audit": "/audit",
        "unknown": "/nowhere",
        "unknown execution": "/executions/nobody",
    }
    path_by_name |= control_flow_paths(caller)
    for tab in ("graph&node=pay", "versions", "diff", "statistics", "definition", "executions"):
        path_by_name[f"workflow {tab}"] = f"/workflows/order?tab={tab}"
    return path_by_name


def control_flow_paths(caller: Caller) -> dict[str, str]:
    """Pages of what goes in items and rounds, and of what waits."""
    form = {
        "type": "object",
        "required": ["tone"],
        "properties": {
            "tone": {"enum": ["warm", "plain"], "description": "How it sounds"},
            "copies": {"type": "integer"},
            "send_on": {"type": "string", "format": "date"},
            "urgent": {"type": "boolean"},
            LONG: {"type": "array"},
        },
    }
    body = [node("check", "pay"), node("after", "noop", ("check",))]
    flow = {
        "name": "flow",
        "nodes": [
            {"id": "each", "for_each": [1, 2, 3], "on_item_failure": "skip", "nodes": body},
            node("loop", "noop", repeat={"until": "false", "max_rounds": 9, "every_seconds": 3600}),
            node("paid", "signal", config={"name": LONG, "timeout_seconds": 3600}),
            node(
                "ask",
                "approval",
                config={"title": f"Send {LONG}?", "text": LONG * 4, "form": form},
            ),
        ],
    }
    execution_id = caller.start(flow)
    caller.post(f"/executions/{execution_id}/signals/other", {"payload": {LONG: LONG}})
    until_now(lambda: caller.items("/approvals"))
    path = f"/executions/{execution_id}"
    until_now(lambda: caller.shown(path)["nodes"]["each"]["state"] == "COMPLETED")
    return {
        "map": f"{path}?node=each",
        "item": f"{path}?under=each[1]&node=each[1].check",
        "item alone": f"{path}?under=each[2]",
        "loop": f"{path}?node=loop",
        "signal": f"{path}?node=paid",
        "signals": f"{path}?tab=signals",
        "approval": f"{path}?node=ask",
        "approvals": "/approvals",
    }


PAGES = [
    "map",
    "item",
    "item alone",
    "loop",
    "signal",
    "signals",
    "approval",
    "approvals",
    "overview",
    "executions",
    "no executions",
    "running",
    "graph",
    "time",
    "nodes",
    "logs",
    "history",
    "values",
    "retry",
    "workflows",
    "long workflow",
    "letters",
    "workers",
    "new workflow",
    "edit",
    "search",
    "search input",
    "search output",
    "no search",
    "compare",
    "no compare",
    "keys",
    "audit",
    "unknown",
    "unknown execution",
    "workflow graph&node=pay",
    "workflow versions",
    "workflow diff",
    "workflow statistics",
    "workflow definition",
    "workflow executions",
]


def open_path(page: Page, service: Running, path: str) -> None:
    page.goto(f"{service.address}/ui{path}")
    expect(page.locator("h1, .empty-title").first).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    if "node=" in path:
        expect(
            page.locator("aside.node-panel [role=tabpanel], .wf-drawing.with-node .json").first
        ).to_be_visible()


def expect_no_findings(page: Page) -> None:
    """In the dark only the colours differ."""
    page.evaluate(AXE)
    rules: dict[Literal["light", "dark"], str] = {
        "light": "undefined",
        "dark": "['color-contrast']",
    }
    for scheme, only in rules.items():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        report = page.evaluate(f"axe.run({{resultTypes: ['violations'], runOnly: {only}}})")
        assert report["passes"] or report["incomplete"], "the rules were looked at"
        grave = [
            f"{scheme}: {violation['id']}: {element['failureSummary']} {element['html'][:200]}"
            for violation in report["violations"]
            if violation["impact"] in GRAVE
            for element in violation["nodes"]
        ]
        assert not grave, "\n".join(grave)


def expect_no_sideways(page: Page) -> None:
    page.set_viewport_size(NARROW)
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    until_now(lambda: page.evaluate(fits), f"{page.url} doesn't scroll sideways", seconds=3)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_grave_findings_and_fits_a_narrow_screen(
    page: Page, service: Running, paths: dict[str, str], name: str
) -> None:
    open_path(page, service, paths[name])
    expect_no_findings(page)
    expect_no_sideways(page)


def test_no_page_is_left_out(paths: dict[str, str]) -> None:
    assert sorted(paths) == sorted(PAGES)


def test_dialogs_have_no_grave_findings(
    page: Page, service: Running, paths: dict[str, str]
) -> None:
    def expect_well(name: str) -> None:
        expect(page.get_by_role("dialog", name=re.compile(name))).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        expect_no_findings(page)
        expect_no_sideways(page)
        page.set_viewport_size(WIDE)

    open_path(page, service, "/workflows/order")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("One field needs a change")).to_be_visible()
    expect_well("Start order")
    page.get_by_role("button", name="JSON", exact=True).click()
    expect_well("Start order")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Aliases").click()
    expect_well("Aliases of order")
    open_path(page, service, paths["executions"])
    page.get_by_label("Select all loaded executions").check()
    expect_no_findings(page)
    bar = page.get_by_role("region", name="Selected executions")
    bar.get_by_role("button", name="Retry").click()
    expect_well("^Retry .* executions")
    page.get_by_role("button", name="Back").click()
    bar.get_by_role("button", name="Cancel").click()
    expect_well("Cancel 2 executions")
    page.get_by_role("button", name="Back").click()
    page.keyboard.press("?")
    expect_well("Keyboard shortcuts")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect_well("Go to")


def test_the_new_dialogs_have_no_grave_findings(
    page: Page, service: Running, paths: dict[str, str]
) -> None:
    def expect_well(name: str) -> None:
        expect(page.get_by_role("dialog", name=re.compile(name))).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        expect_no_findings(page)
        expect_no_sideways(page)
        page.set_viewport_size(WIDE)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)

    open_path(page, service, paths["retry"].partition("?")[0])
    page.get_by_role("button", name="Run again").click()
    expect_well("Run order")
    page.get_by_role("button", name="Compare").click()
    expect_well("Compare with another execution")
    open_path(page, service, paths["keys"])
    page.get_by_role("button", name="Create a key").click()
    expect_well("Create a key")
    open_path(page, service, paths["new workflow"])
    document = {"name": "order", "nodes": [node("cart", "noop")]}
    paste(page, document)
    page.get_by_role("button", name="Save").click()
    expect_well("Save order as the next version")
    paste(page, json.dumps(document).replace("noop", "nope"))
    expect(page.get_by_role("list", name="Problems")).to_be_visible()
    expect_no_findings(page)


def test_open_dead_letters_have_no_grave_findings(
    page: Page, service: Running, paths: dict[str, str]
) -> None:
    open_path(page, service, paths["letters"])
    group = page.locator("li.dead-letters-group").filter(has_text="out of order")
    group.locator(".dead-letters-toggle").click()
    group.get_by_role("checkbox", name=re.compile("Select all")).check()
    expect(page.get_by_role("region", name="Selected dead letters")).to_be_visible()
    expect_no_findings(page)
    expect_no_sideways(page)
    for button, title in (("Inspect", "Dead letter"), ("Retry", "Retry 1"), ("Drop", "Drop 1")):
        group.get_by_role("button", name=re.compile(f"^{button}")).click()
        expect(page.get_by_role("dialog", name=re.compile(title))).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        expect_no_findings(page)
        expect_no_sideways(page)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_login_has_no_grave_findings(page: Page, tmp_path: Any) -> None:
    with running_service(
        tmp_path
    ) as first:  # on loopback, to make a key: without one it wouldn't start
        assert (
            Caller(first.address).post("/keys", {"name": "any", "scopes": ["read"]}).status == 201
        )
    with running_service(tmp_path, host="0.0.0.0") as running:  # noqa: S104 -- what keys are for
        page.goto(f"{running.address.replace('0.0.0.0', '127.0.0.1')}/ui/")  # noqa: S104
        page.get_by_label("API key").fill("psk_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        expect_no_findings(page)
        expect_no_sideways(page)


def tab_to(page: Page, wanted: Locator) -> None:
    """As someone without a mouse does, who also has to see where they are."""
    expect(wanted).to_be_visible()
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        if wanted.evaluate("each => each === document.activeElement"):
            style = wanted.evaluate(
                "each => [getComputedStyle(each).outlineStyle, getComputedStyle(each).boxShadow]"
            )
            assert style != ["none", "none"], "the focus is seen"
            return
    raise AssertionError(f"{wanted} isn't reached by {TABS_MAX} tabs")


def test_the_main_path_needs_no_mouse(
    page: Page, service: Running, shop: Shop, paths: dict[str, str]
) -> None:
    failed = paths["retry"].partition("?")[0]
    page.goto(f"{service.address}/ui/")
    tab_to(page, page.get_by_role("link", name="Skip to the content"))
    tab_to(
        page, page.get_by_role("navigation", name="Sections").get_by_role("link", name="Executions")
    )
    page.keyboard.press("Enter")
    tab_to(page, page.locator(f'[data-row="{failed.rpartition("/")[2]}"]'))
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{service.address}/ui{failed}")
    pay = page.locator(".react-flow__node", has=box(page, "pay"))
    tab_to(page, pay)
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Node pay")
    expect(panel).to_be_focused()
    expect(panel).to_contain_text("the bank refused the card")
    tab_to(page, panel.get_by_role("tab", name="Summary"))
    page.keyboard.press("ArrowRight")
    expect(panel.get_by_role("tab", name="Output")).to_be_focused()
    expect(panel).to_contain_text("Only a completed node has one")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(pay).to_be_focused()  # where one came from, not the top of the page
    page.goto(f"{service.address}/ui{failed}")
    tab_to(page, page.get_by_role("button", name="Retry", exact=True))
    page.keyboard.press("Enter")
    shop.broken = False
    tab_to(page, page.get_by_role("button", name=re.compile(r"^Run \d nodes$")))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("COMPLETED")
    shop.broken = True
    expect(page).not_to_have_url(re.compile(failed))
