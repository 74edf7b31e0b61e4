"""Whatever ids, outputs, errors and logs hold, it is text.

Nothing of it runs, and nothing of it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from penstock.errors import Terminal
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from tests.api.caller import Caller
from tests.api_server import Running, running_service
from tests.waiting import until_now

IMAGE = "<img src=x onerror=\"window.hacked='image'\">"
SCRIPT = "</script><script>window.hacked='script'</script>"
LINK = "javascript:window.hacked='link'"
TEMPLATE = "{{ secrets.BANK }}${7*7}"
HOSTILE = [IMAGE, SCRIPT, LINK, TEMPLATE, "\u202etxt.exe", "'\"><svg/onload=window.hacked='svg'>"]


async def evil(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    ctx.log.info("%s", SCRIPT)
    if config.get("fails"):
        raise Terminal(IMAGE + SCRIPT)
    return {IMAGE: SCRIPT, "link": LINK, "deep": [{"__proto__": IMAGE}], "html": "<b>bold</b>"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Running]:
    with running_service(
        tmp_path_factory.mktemp("safety"), Registry([Handler("evil", evil)])
    ) as running:
        yield running


@pytest.fixture(scope="module")
def execution(service: Running) -> str:
    names = [f"{text} {number}" for number, text in enumerate(HOSTILE)]
    nodes: list[dict[str, Any]] = [{"id": name, "handler": "evil"} for name in names]
    nodes.append(
        {"id": f"fails {IMAGE}", "handler": "evil", "depends_on": names, "config": {"fails": True}}
    )
    document = {"name": f"{IMAGE}/{SCRIPT}", "description": IMAGE, "nodes": nodes}
    caller = Caller(service.address)
    assert caller.post("/workflows", document).status == 201
    order = {
        "workflow": document["name"],
        "input": {IMAGE: SCRIPT},
        "labels": {IMAGE: SCRIPT, "link": LINK},
    }
    answer = caller.post("/executions", order, wait=20)
    assert answer.body["state"] == "FAILED", answer.body
    return str(answer.body["execution_id"])


@pytest.fixture(scope="module")
def waiting(service: Running) -> str:
    """A map, a loop, a signal and an approval of which every text is hostile; some wait."""
    properties = {
        IMAGE: {"title": SCRIPT, "description": IMAGE, "type": "string"},
        "choice": {"enum": [SCRIPT, LINK], "title": IMAGE},
    }
    texts = [text for text in HOSTILE if text != TEMPLATE]
    ask = {"title": IMAGE, "text": "{{ first.html }}" + SCRIPT, "form": {"properties": properties}}
    evil_node = {"id": f"inner {SCRIPT}", "handler": "evil"}
    nodes: list[dict[str, Any]] = [
        {"id": "first", "handler": "evil"},
        {"id": f"map {IMAGE}", "for_each": texts, "key": "{{ item }}", "nodes": [evil_node]},
        {"id": "single", "for_each": texts, "handler": "evil", "on_item_failure": "skip"},
        {
            "id": f"loop {IMAGE}",
            "repeat": {"until": "round == 2", "max_rounds": 3},
            "nodes": [evil_node],
        },
        {"id": "ask", "handler": "approval", "depends_on": ["first"], "config": ask},
        {"id": "paid", "handler": "signal", "config": {"name": IMAGE, "correlation": SCRIPT}},
    ]
    caller = Caller(service.address)
    execution_id = caller.start({"name": f"flow {IMAGE}", "nodes": nodes})
    signal = {"name": SCRIPT, "payload": {IMAGE: SCRIPT}, "correlation": IMAGE}
    assert caller.post(f"/executions/{execution_id}/signals", signal).status == 202
    until_now(lambda: caller.items("/approvals"))
    path = f"/executions/{execution_id}"
    until_now(lambda: caller.shown(path)["nodes"][f"loop {IMAGE}"]["state"] == "COMPLETED")
    return execution_id


@pytest.mark.fault("security", "script in items, signals and approvals, in Chromium")
def test_hostile_items_signals_and_approvals_do_not_run(
    page: Page, service: Running, waiting: str
) -> None:
    hostile_map = f"map {IMAGE}"
    inner = f"{hostile_map}[0].inner {SCRIPT}"
    queries: list[dict[str, str]] = [
        {},
        {"node": hostile_map},
        {"under": f"{hostile_map}[0]"},
        {"under": f"{hostile_map}[0]", "node": inner},
        {"under": f"{hostile_map}[0]", "node": f"{hostile_map}[0]"},
        {"node": f"loop {IMAGE}"},
        {"under": IMAGE, "node": SCRIPT},
        {"node": "single[3]"},
        {"node": "ask"},
        {"node": "paid"},
        {"tab": "signals"},
        {"tab": "history"},
    ]
    paths = [f"/executions/{waiting}?{urlencode(query)}" for query in queries]
    for path in (*paths, "/approvals"):
        page.goto(f"{service.address}/ui{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        for details in page.locator("main details").all():
            details.locator("summary").click()
        assert page.evaluate("window.hacked") is None, path
        assert page.locator("main img, main script, main iframe, main object").count() == 0, path
        assert page.locator('a[href^="javascript"]').count() == 0, path
    expect(page.get_by_role("region", name=IMAGE)).to_contain_text(f"<b>bold</b>{SCRIPT}")


@pytest.mark.fault("security", "script in ids and outputs, in Chromium")
def test_hostile_ids_and_outputs_do_not_run(page: Page, service: Running, execution: str) -> None:
    for path in (
        f"/executions/{execution}",
        f"/executions/{execution}?tab=nodes",
        f"/executions/{execution}?tab=time",
        f"/executions/{execution}?tab=history",
        f"/executions/{execution}?tab=values",
        "/",
        "/executions",
        "/workflows",
        "/dead-letters",
        "/workers",
    ):
        page.goto(f"{service.address}/ui{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        assert page.evaluate("window.hacked") is None, path
        assert page.locator("main img, main script, main iframe, main object").count() == 0, path
        assert page.locator('a[href^="javascript"]').count() == 0, path


def test_a_hostile_node_is_opened_from_the_graph(
    page: Page, service: Running, execution: str
) -> None:
    page.goto(f"{service.address}/ui/executions/{execution}")
    page.locator(".node-box", has=page.get_by_text(f"{IMAGE} 0", exact=True)).click()
    panel = page.get_by_role("complementary")
    for tab in ("Summary", "Output", "Config", "Logs"):
        panel.get_by_role("tab", name=tab, exact=True).click()
        expect(panel.get_by_role("tabpanel")).to_be_visible()
        assert page.evaluate("window.hacked") is None, tab
    expect(panel).to_contain_text(SCRIPT)
    panel.get_by_role("tab", name="Output", exact=True).click()
    expect(panel).to_contain_text(LINK)
    expect(panel).to_contain_text("<b>bold</b>")


def test_the_address_cannot_bring_script_along(page: Page, service: Running) -> None:
    for path in (
        "/executions/<script>alert(1)</script>",
        "/%22onload=%22x",
        "/executions?text=<img src=x onerror=x>",
    ):
        page.goto(f"{service.address}/ui{path}")
        expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
        assert page.locator("main img, main script").count() == 0


@pytest.mark.fault("security", "scripts other than the UI's own, in Chromium")
def test_the_page_runs_no_script_but_its_own(context: BrowserContext, service: Running) -> None:
    """The policy stands, also where a mistake of ours would put a script into the page."""
    page = context.new_page()  # the browser complains, as it should
    page.goto(f"{service.address}/ui/")
    expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
    refused: list[str] = page.evaluate(
        """async () => {
          const refused = [];
          document.addEventListener('securitypolicyviolation', (event) => {
            refused.push(event.effectiveDirective);
          });
          const inline = document.createElement('script');
          inline.textContent = 'window.hacked = 1';
          document.body.append(inline);
          const image = document.createElement('img');
          image.src = 'http://127.0.0.1:9/x.png';
          document.body.append(image);
          const styled = document.createElement('div');
          styled.setAttribute('style', 'color: red');
          document.body.append(styled);
          await fetch('http://127.0.0.1:9/').catch(() => {});
          await new Promise((done) => setTimeout(done, 50));
          return refused;
        }"""
    )
    assert {"script-src-elem", "img-src", "style-src-attr", "connect-src"} <= set(refused)
    assert page.evaluate("window.hacked") is None
