"""Webhooks on the command line: stored, listed, tried out, delivered again, deleted."""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from pathlib import Path
from urllib.request import Request, urlopen

from tests.cli.commands import nodes, write
from tests.cli.serving import Desk, dev

SECRET = "the secret of the shop"
HOOK = {
    "start": {"workflow": "flow", "input": {"order": "{{ body.order }}"}},
    "verify": {"scheme": "github", "secret": "SHOP"},
    "filter": "headers['x-event'] == 'paid'",
}


def send(url: str, value: object) -> int:
    body = json.dumps(value).encode()
    digest = hmac.new(SECRET.encode(), body, sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-Hub-Signature-256": f"sha256={digest}",
        "X-Event": "paid",
    }
    with urlopen(Request(f"{url}/hooks/shop", body, headers)) as answer:  # noqa: S310 -- ours
        return int(answer.status)


def test_a_hook_from_its_file_to_its_end(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "flow.json": json.dumps({**nodes({"id": "a", "handler": "echo"}), "name": "flow"}),
            "shop.json": json.dumps(HOOK),
            "list.json": "[]",
            "penstock.toml": 'secrets_file = "secrets.env"',
            "secrets.env": f"SHOP={SECRET}",
        },
    )
    with dev(tmp_path) as url:
        desk = Desk(tmp_path, url)
        desk.out("put", "flow.json")
        assert "No webhooks." in desk("hooks", "list").stderr
        assert desk.out("hooks", "put", "shop", "shop.json") == "/hooks/shop"
        assert desk.json("hooks", "put", "shop", "shop.json")["created"] is False
        assert json.loads(desk.out("hooks", "show", "shop")) == {**HOOK, "id": "shop"}
        assert desk.json("hooks", "show", "shop")["path"] == "/hooks/shop"
        row = desk.out("hooks", "list").splitlines()[-1].split()
        assert row[:4] == ["shop", "/hooks/shop", "flow", "github"]
        assert [item["id"] for item in desk.json("hooks", "list")["items"]] == ["shop"]

        test = ["hooks", "test", "shop", "--body", '{"order": 7}']
        assert '"order": 7' in desk.out(*test, "--header", "X-Event=paid")
        skipped = desk.out(*test, "--header", "X-Event=other")
        assert skipped == "skipped: the filter gives false"
        failed = desk(*test)
        assert (failed.returncode, failed.stdout.startswith("failed: ")) == (1, True)
        assert desk(*test, "--header", "X-Event").returncode == 2

        assert "No deliveries." in desk("hooks", "deliveries", "shop").stderr
        assert [send(url, {"order": 7}), send(url, {"order": 8})] == [202, 202]
        newest, oldest = desk.json("hooks", "deliveries", "shop")["items"]
        assert (newest["body"], oldest["body"]) == ({"order": 8}, {"order": 7})
        cut = desk("hooks", "deliveries", "shop", "--limit", "1")
        assert newest["execution_id"] in cut.stdout
        assert "There are more" in cut.stderr

        again = desk.out("hooks", "redeliver", "shop", str(oldest["id"]))
        assert again not in (newest["execution_id"], oldest["execution_id"])
        answer = desk.json("hooks", "redeliver", "shop", str(oldest["id"]))
        assert answer.keys() == {"execution_id"}

        assert desk.out("hooks", "delete", "shop") == "deleted shop"
        for arguments in (
            ("hooks", "show", "shop"),
            ("hooks", "delete", "shop"),
            ("hooks", "put", "other", "list.json"),
            ("hooks", "put", "other", "missing.json"),
        ):
            refused = desk(*arguments)
            assert refused.returncode != 0
            assert "Traceback" not in refused.stderr
