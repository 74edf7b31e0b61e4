"""The page in a real Chromium: `make bench-page`.

First load, opening and panning 10,000 nodes, a live run of 1,000.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, Response, sync_playwright

from benchmarks.workloads import layers
from tests.api.caller import Caller
from tests.api_server import running_service
from tests.ui.chromium import FLAGS, find_chromium

RUNS = 5
LIVE_SECONDS = 20
PAN = """async () => {
  const pane = document.querySelector('.react-flow__pane');
  const { left, top } = pane.getBoundingClientRect();
  const move = (kind, step) => {
    const target = kind === 'mousedown' ? pane : window;
    const clientX = left + 700 - step * 5;
    const clientY = top + 300 - step;
    const pressed = { bubbles: true, button: 0, buttons: 1, view: window };
    target.dispatchEvent(new MouseEvent(kind, { clientX, clientY, ...pressed }));
  };
  const times = [];
  let last = performance.now();
  move('mousedown', 0);
  for (let step = 0; step < 120; step += 1) {
    move('mousemove', step);
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  move('mouseup', 120);
  return times.sort((a, b) => a - b);
}"""


def live_flow(size: int) -> dict[str, Any]:
    """Nodes that end one after another over some seconds, ten at a time."""
    width = 10
    nodes = [
        {
            "id": f"n{row}.{column}",
            "handler": "sleep",
            "config": {"seconds": LIVE_SECONDS * width / size},
            "dependencies": [f"n{row - 1}.{column}"] if row else [],
        }
        for row in range(size // width)
        for column in range(width)
    ]
    return {"name": f"live-{size}", "nodes": nodes}


def first_load(browser: Browser, address: str) -> tuple[int, int]:
    sizes: dict[str, int] = {}

    def note(response: Response) -> None:
        if "/ui/" in response.url:
            sizes[response.url.rpartition("/")[2]] = int(response.headers["content-length"])

    page = browser.new_page()
    page.on("response", note)
    page.goto(address)
    page.locator(".node-box, .group-box").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.close()
    elk = sum(size for name, size in sizes.items() if name.startswith("elk"))
    return sum(sizes.values()) - elk, elk


def opening(browser: Browser, address: str) -> float:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    began = time.perf_counter()
    page.goto(address)
    page.locator(".group-box").first.wait_for()
    took = time.perf_counter() - began
    page.close()
    return took


def panning(browser: Browser, address: str) -> list[float]:
    """Frame times in milliseconds, with a level of 100 nodes open."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}?node=n0.5")
    page.locator(".node-box.selected").wait_for()
    page.keyboard.press("Escape")
    times: list[float] = page.evaluate(PAN)
    page.close()
    return times


def tab_process(page: Page) -> psutil.Process:
    """The renderer that grows busy when this page is."""
    renderers = [
        process
        for process in psutil.process_iter(["cmdline"])
        if "--type=renderer" in (process.info["cmdline"] or [])
    ]
    before = {process.pid: sum(process.cpu_times()[:2]) for process in renderers}
    page.evaluate("() => { const end = performance.now() + 300; while (performance.now() < end); }")
    return max(renderers, key=lambda process: sum(process.cpu_times()[:2]) - before[process.pid])


def live(browser: Browser, caller: Caller, tab: str) -> tuple[float, float]:
    """Share of one core that the tab takes while 1,000 nodes run, and for how long they do."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{caller.address}/ui/workers")
    page.locator("table").first.wait_for()
    process = tab_process(page)
    execution_id = caller.start(live_flow(1000))
    page.goto(f"{caller.address}/ui/executions/{execution_id}?tab={tab}")
    page.locator(".node-box, .group-box, .time-row").first.wait_for()
    used, began = sum(process.cpu_times()[:2]), time.perf_counter()
    page.locator("h1", has_text="COMPLETED").wait_for(timeout=120_000)
    took = time.perf_counter() - began
    share = (sum(process.cpu_times()[:2]) - used) / took
    page.close()
    return share, took


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service(Path(folder)) as service,
        sync_playwright() as play,
    ):
        caller = Caller(service.address)
        answer = caller.post("/executions", {"definition": layers(100, 100)}, wait=60)
        address = f"{service.address}/ui/executions/{answer.body['execution_id']}"
        browser = play.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        print(f"Chromium {browser.version}")
        small = caller.post("/executions", {"definition": layers(3, 3)}, wait=60)
        page, elk = first_load(
            browser, f"{service.address}/ui/executions/{small.body['execution_id']}"
        )
        print(
            f"first load of an execution's page: {page / 1000:.0f} KB gzipped, and elk "
            f"{elk / 1000:.0f} KB in a worker"
        )
        times = sorted(opening(browser, address) for _ in range(RUNS))
        print(
            f"10,000 nodes open in {statistics.median(times):.2f} s ({times[0]:.2f} to "
            f"{times[-1]:.2f})"
        )
        frames = panning(browser, address)
        p50, p95 = frames[len(frames) // 2], frames[int(len(frames) * 0.95)]
        print(f"panning them: a frame takes {p50:.0f} ms (p50), {p95:.0f} ms (p95)")
        for tab in ("graph", "time"):
            share, took = live(browser, caller, tab)
            print(
                f"live run of 1,000 nodes in {took:.0f} s, {tab}: the tab takes {share:.0%} of "
                "a core"
            )
        browser.close()


if __name__ == "__main__":
    main()
