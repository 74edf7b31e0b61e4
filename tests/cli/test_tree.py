"""Children on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands import nodes, penstock, write
from tests.cli.serving import dev

CHILD = {"id": "pay", "handler": "echo", "config": {"x": 1}}
BILL = {"id": "bill", "handler": "workflow", "config": {"workflow": "billing"}}


def test_a_tree_shows_each_child_below_its_parent(tmp_path: Path) -> None:
    files = {
        "billing.json": json.dumps({**nodes(CHILD), "name": "billing"}),
        "order.json": json.dumps({**nodes(BILL), "name": "order"}),
    }
    write(tmp_path, files)
    with dev(tmp_path) as url:
        env = {"PENSTOCK_URL": url}
        penstock("put", "billing.json", cwd=tmp_path, env=env)
        done = penstock("submit", "order.json", "--wait", "--json", cwd=tmp_path, env=env)
        execution_id = json.loads(done.stdout)["execution_id"]

        as_json = penstock("tree", execution_id, "--json", cwd=tmp_path, env=env)
        _, child = json.loads(as_json.stdout)["items"]
        shown = penstock("tree", execution_id, cwd=tmp_path, env=env).stdout.splitlines()
        assert shown == [
            f"order@1 COMPLETED {execution_id}",
            f"  bill: billing@1 COMPLETED {child['execution_id']}",
        ]
