"""A web shop for the quickstart: real HTTP, on loopback only, on a free port."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

ANSWERS: dict[str, tuple[float, dict[str, Any]]] = {
    "/customers/1": (0.5, {"id": 1, "name": "Ada", "tier": "vip"}),
    "/customers/2": (0.5, {"id": 2, "name": "Grace", "tier": "basic"}),
    "/prices/book": (0.3, {"item": "book", "cents": 1290}),
    "/prices/pen": (0.6, {"item": "pen", "cents": 250}),
    "/prices/lamp": (0.9, {"item": "lamp", "cents": 4900}),
    "/stock": (0.3, {"available": {"book": 3, "pen": 12, "lamp": 1}}),
}
"""Maps each path to the seconds that the answer takes, and the answer."""


class Shop(BaseHTTPRequestHandler):
    stock_is_awake = False

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path not in ANSWERS:
            self._answer(404, {"error": f"there is no {path} here"})
            return
        seconds, answer = ANSWERS[path]
        time.sleep(seconds)
        if path == "/stock" and not Shop.stock_is_awake:
            Shop.stock_is_awake = True
            self._answer(503, {"error": "still counting, ask again"})
        else:
            self._answer(200, answer)

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- http.server's name
        """Log nothing: the terminal shows the progress of the run."""


@contextmanager
def open_shop() -> Iterator[str]:
    """Run the shop, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
