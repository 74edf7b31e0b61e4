"""Screenshots of the UI, from a real run in a real browser: `make screenshots`.

It takes about four minutes.

python -m scripts.screenshots those of README and docs, into docs/images/ui python -m
scripts.screenshots --all DIR every page in light and dark, wide and narrow, to look at

The letters are those of the fonts that this machine has; Inter (Debian: fonts-inter) is what the
page asks for first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.ui.chromium import FLAGS, find_chromium  # noqa: E402 -- the same browser as the tests have

SHOP = ROOT / "examples" / "shop"
TARGET = ROOT / "docs" / "images" / "ui"
LOAD_SECONDS = 150
READY = "Penstock is ready at "
dice = random.Random(11)


class Service:
    def __init__(self, address: str) -> None:
        self.address = address
        self.completed = self.failed = self.large = self.running = ""

    def call(self, path: str, body: Any = None, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(  # noqa: S310 -- ours
            f"{self.address}/api/v1{path}",
            data,
            {"Content-Type": "application/json"},
            method=method,
        )
        with urlopen(request) as answer:  # noqa: S310
            return json.load(answer)

    def start(
        self, workflow: str, input_value: dict[str, Any] | None = None, wait: int = 0, **fields: Any
    ) -> str:
        query = f"?wait={wait}" if wait else ""
        return str(
            self.call(
                f"/executions{query}", {"workflow": workflow, "input": input_value or {}, **fields}
            )["execution_id"]
        )


@contextmanager
def service() -> Iterator[Service]:
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "penstock",
            "dev",
            "--port",
            "0",
        ]
        environ = {
            **os.environ,
            "PENSTOCK_STORE": f"sqlite:///{folder}/shop.db",
        }
        with subprocess.Popen(
            command, cwd=SHOP, env=environ, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield Service(process.stdout.readline().removeprefix(READY).strip())
            finally:
                process.terminate()


def store(service: Service) -> None:
    order = json.loads((SHOP / "order.json").read_text(encoding="utf-8"))
    service.call("/workflows", order)
    better = json.loads(json.dumps(order))
    better["description"] = "From the cart to the parcel, with a receipt by mail"
    better["nodes"][6]["timeout_seconds"] = 20
    better["nodes"][6]["retry"] = {"max_attempts": 3, "initial_delay_seconds": 0.3}
    better["nodes"].insert(
        7,
        {
            "id": "invoice",
            "handler": "shop.work",
            "depends_on": ["charge"],
            "config": {"seconds": 0.2},
        },
    )
    service.call("/workflows", better)
    slow = {**json.loads(json.dumps(better)), "name": "checkout"}
    for node in slow["nodes"]:
        if "seconds" in node.get("config", {}):
            node["config"]["seconds"] *= 8
    service.call("/workflows", slow)
    service.call("/workflows/order/aliases/stable", {"version": 1}, "PUT")
    for name, steps in {"nightly-report": 6, "image-resize": 3, "invoice-import": 9}.items():
        nodes = [
            {
                "id": f"{name.split('-')[1]}-{n}",
                "handler": "shop.work",
                "config": {"seconds": 0.2},
                "depends_on": [f"{name.split('-')[1]}-{dice.randrange(n)}"] if n else [],
            }
            for n in range(steps)
        ]
        service.call("/workflows", {"name": name, "labels": {"team": "data"}, "nodes": nodes})
    wide = [
        {
            "id": f"n{depth}.{column}",
            "handler": "noop",
            "depends_on": [f"n{depth - 1}.{column}", f"n{depth - 1}.{(column + 1) % 100}"]
            if depth
            else [],
        }
        for depth in range(100)
        for column in range(100)
    ]
    service.call("/workflows", {"name": "ten-thousand", "nodes": wide})
    store_control_flow(service)


def store_control_flow(service: Service) -> None:
    page_nodes = [
        {"id": "fetch", "handler": "shop.work", "config": {"seconds": 0.2}},
        {
            "id": "check",
            "handler": "fail",
            "depends_on": ["fetch"],
            "condition": "page % 97 == 13",
            "config": {"message": "the page has no title"},
            "retry": {"max_attempts": 1},
        },
        {
            "id": "index",
            "handler": "echo",
            "depends_on": ["check"],
            "trigger_rule": "none_failed",
            "config": {"page": "{{ page }}"},
        },
    ]
    pages = {
        "id": "pages",
        "for_each": "{{ input.pages }}",
        "as": "page",
        "max_parallel": 60,
        "on_item_failure": "skip",
        "depends_on": ["sitemap"],
        "nodes": page_nodes,
    }
    nodes = [
        {"id": "sitemap", "handler": "noop"},
        pages,
        {"id": "report", "handler": "echo", "depends_on": ["pages"]},
    ]
    service.call("/workflows", {"name": "crawl", "nodes": nodes})
    form = {
        "type": "object",
        "required": ["tone"],
        "properties": {
            "tone": {"enum": ["warm", "plain"], "description": "How the letter sounds"},
            "send_on": {"type": "string", "format": "date"},
            "urgent": {"type": "boolean"},
        },
    }
    release = {
        "title": "Send this letter to Ada?",
        "text": "Dear Ada,\n\nyour order 1234 is on its way.",
        "form": form,
        "comment": "on_reject",
        "expires_seconds": 2 * 86400,
    }
    nodes = [{"id": "release", "handler": "approval", "config": release}]
    service.call("/workflows", {"name": "letter", "nodes": nodes})
    refund = {"title": "Refund 64.40 EUR for order 1234?", "needed": 2}
    nodes = [{"id": "refund", "handler": "approval", "config": refund}]
    service.call("/workflows", {"name": "refund", "nodes": nodes})


def load(service: Service, seconds: float) -> None:
    """Orders as they come in a shop."""
    until = time.monotonic() + seconds
    number = 1000
    while time.monotonic() < until:
        number += 1
        card = dice.choices(["good", "expired", "unlucky"], [90, 6, 4])[0]
        service.start(
            "order",
            {"order": number, "amount": 6440, "card": card},
            labels={"shop": dice.choice(["Berlin", "Lyon"])},
        )
        if dice.random() < 0.5:
            service.start(dice.choice(["nightly-report", "image-resize", "invoice-import"]))
        time.sleep(dice.expovariate(1 / 0.6))


Step = Callable[[Page, Service], None]


def graph(page: Page, _: Service) -> None:
    page.locator(".node-box, .group-box").first.wait_for()
    page.wait_for_timeout(1200)


def open_groups(page: Page, service: Service) -> None:
    graph(page, service)
    page.locator(".group-box").first.click()
    page.wait_for_timeout(600)


def begin(page: Page, service: Service) -> None:
    """A fresh run, caught in the middle."""
    execution_id = service.start("checkout", {"order": 4711, "amount": 6440})
    page.goto(f"{service.address}/ui/executions/{execution_id}")
    page.locator(".node-box.state-running", has_text="mail").wait_for()
    page.wait_for_timeout(150)


def begin_map(page: Page, service: Service) -> None:
    """A map, caught in the middle."""
    execution_id = service.start("crawl", {"pages": list(range(3000))})
    page.goto(f"{service.address}/ui/executions/{execution_id}?node=pages")
    page.get_by_role("button", name=re.compile("^COMPLETED [6-9]")).wait_for(timeout=120_000)


def ask(page: Page, service: Service) -> None:
    service.start("letter")
    service.start("refund")
    page.reload()
    page.get_by_role("button", name="Send this letter").click()


def press(name: str) -> Step:
    return lambda page, _: page.get_by_role("button", name=re.compile(name)).first.click()


def first_dead_letters(page: Page, _: Service) -> None:
    page.locator("main button[aria-expanded]").first.click()


def scroll_editor(page: Page, _: Service) -> None:
    """To the nodes."""
    page.locator(".node-box", has_text="charge").click()
    page.mouse.move(2, 2)


def change_document(page: Page, _: Service) -> None:
    page.get_by_role("textbox", name="Workflow document").click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.type('\n"timeout_seconds": 600,')
    page.get_by_role("button", name="Save").and_(page.locator(":enabled")).wait_for()


def open_palette(page: Page, _: Service) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("order")
    page.wait_for_timeout(800)


PAGES: dict[str, tuple[str, list[Step]]] = {
    "overview": ("/?window=15m", []),
    "executions": ("/executions", []),
    "running": ("/executions", [begin]),
    "failed": ("/executions/{failed}?node=charge", [graph]),
    "retry": ("/executions/{failed}?retry=yes", [graph]),
    "map": ("/executions", [begin_map]),
    "approvals": ("/approvals", [ask]),
    "time-line": ("/executions/{failed}?tab=time", []),
    "large": ("/executions/{large}", [open_groups]),
    "workflows": ("/workflows", []),
    "workflow": ("/workflows/order", [graph]),
    "diff": ("/workflows/order?tab=diff", []),
    "statistics": ("/workflows/order?tab=statistics", []),
    "start": ("/workflows/order", [graph, press("^Start")]),
    "editor": ("/edit/order", [graph, scroll_editor]),
    "save": ("/edit/order", [graph, change_document, press("^Save")]),
    "logs": ("/executions/{failed}?tab=logs", []),
    "compare": ("/compare?left={completed}&right={failed}", []),
    "search": ("/search?in=input&text=unlucky", []),
    "palette": ("/executions", [open_palette]),
    "keys": ("/api-keys", []),
    "audit": ("/audit", []),
    "dead-letters": ("/dead-letters", [first_dead_letters]),
    "workers": ("/workers", []),
}
DARK = ("overview", "running")
NARROW = ("failed", "executions")


def take(  # noqa: PLR0913 -- of what, where and how
    browser: Browser, service: Service, name: str, path: Path, *, dark: bool, width: int
) -> None:
    where, steps = PAGES[name]
    height = 900 if width > 1000 else 860
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    page = context.new_page()
    ids = {"failed": service.failed, "large": service.large, "completed": service.completed}
    page.goto(f"{service.address}/ui{where.format(**ids)}")
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_timeout(1500)
    for step in steps:
        step(page, service)
    page.wait_for_timeout(600)
    page.mouse.move(width - 2, height - 2)
    page.screenshot(path=path)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument(
        "--all", metavar="DIR", type=Path, help="every page in every way, into this folder"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=LOAD_SECONDS,
        help="of orders before the pictures are taken",
    )
    parser.add_argument(
        "--only", nargs="*", default=list(PAGES), choices=list(PAGES), metavar="PAGE"
    )
    chosen = parser.parse_args()
    target: Path = chosen.all or TARGET
    target.mkdir(parents=True, exist_ok=True)
    with service() as running, sync_playwright() as playwright:
        store(running)
        load(running, chosen.seconds)
        running.failed = running.start(
            "order", {"order": 1234, "amount": 6440, "card": "unlucky"}, wait=30
        )
        running.completed = running.start(
            "order", {"order": 1235, "amount": 6440, "card": "good"}, wait=30
        )
        running.large = running.start("ten-thousand", wait=30)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        for name in chosen.only:
            if chosen.all:
                for dark in (False, True):
                    for width in (1440, 400):
                        theme = "dark" if dark else "light"
                        take(
                            browser,
                            running,
                            name,
                            target / f"{name}-{theme}-{width}.png",
                            dark=dark,
                            width=width,
                        )
            else:
                take(browser, running, name, target / f"{name}.png", dark=False, width=1440)
                if name in DARK:
                    take(browser, running, name, target / f"{name}-dark.png", dark=True, width=1440)
                if name in NARROW:
                    take(
                        browser, running, name, target / f"{name}-narrow.png", dark=False, width=400
                    )
            print(name)
        browser.close()


if __name__ == "__main__":
    main()
