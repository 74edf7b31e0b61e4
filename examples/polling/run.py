"""Polls a flaky service, which this program starts itself: every third answer is an error."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import penstock
from penstock.definition import parse

ROUNDS_OF_WORK = 4


class FlakyService(BaseHTTPRequestHandler):
    asked = 0
    looked = 0

    def do_POST(self) -> None:
        self.answer(202, {"id": "job-7", "state": "running"})

    def do_GET(self) -> None:
        if self.path.startswith("/reports/"):
            self.answer(200, {"title": "Report of 2026"})
            return
        FlakyService.asked += 1
        if FlakyService.asked % 3 == 0:
            self.answer(503, {"error": "try again"})
            return
        FlakyService.looked += 1
        state = "done" if FlakyService.looked > ROUNDS_OF_WORK else "running"
        self.answer(200, {"id": "job-7", "state": state})

    def answer(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing for each request."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), FlakyService)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"

    document = parse(Path("poll.yaml").read_text(encoding="utf-8"), form="yaml")
    result = penstock.run(document, {"url": url})
    print(result.state, result.output)
    print(f"asked {FlakyService.asked} times, {FlakyService.asked // 3} of them in vain")


if __name__ == "__main__":
    main()
