"""Maps on the command line: what is inside, items as lines, a preview with items."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.control import print_preview
from penstock.views.retries import Retried, RetryItems, RetryRun
from tests.cli.commands import nodes, penstock, write
from tests.cli.serving import dev

BODY = [
    {"id": "check", "handler": "fail", "condition": "item > 1", "retry": {"max_attempts": 1}},
    {"id": "tell", "handler": "echo", "trigger_rule": "none_failed", "depends_on": ["check"]},
]
MAP = {"id": "each", "for_each": [1, 2, 1], "on_item_failure": "continue", "nodes": BODY}


def test_items_can_be_listed_followed_and_retried(tmp_path: Path) -> None:
    write(tmp_path, {"map.json": json.dumps({**nodes(MAP), "name": "map"})})
    with dev(tmp_path) as url:
        env = {"PENSTOCK_URL": url}
        done = penstock("submit", "map.json", "--wait", "--json", cwd=tmp_path, env=env)
        execution_id = json.loads(done.stdout)["execution_id"]

        shown = penstock("show", execution_id, cwd=tmp_path, env=env).stdout
        assert "1 of 3 items failed; first: each[1].check" in shown
        arguments = ("show", execution_id, "--under", "each", "--state", "failed")
        listed = penstock(*arguments, "--json", cwd=tmp_path, env=env)
        assert [node["node_id"] for node in json.loads(listed.stdout)] == [
            "each[1]",
            "each[1].check",
        ]
        assert "each[1].check" in penstock(*arguments, cwd=tmp_path, env=env).stdout

        followed = penstock(
            "results", execution_id, "--items", "each", "--follow", cwd=tmp_path, env=env
        )
        lines = [json.loads(line) for line in followed.stdout.splitlines()]
        assert sorted((line["index"], line["state"]) for line in lines) == [
            (0, "COMPLETED"),
            (1, "FAILED"),
            (2, "COMPLETED"),
        ]
        preview = penstock("retry", execution_id, "--preview", cwd=tmp_path, env=env).stdout
        assert "1 of 3 items have to run: each[1]\n" in preview
        arguments = ("retry", execution_id, "--items", "all", "--preview", "--json")
        plan = json.loads(penstock(*arguments, cwd=tmp_path, env=env).stdout)
        assert plan["runs"] == [{"node_id": "each", "reason": "failed"}]


def test_a_preview_says_what_is_new_in_a_list_and_what_is_gone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    items = RetryItems(runs=1, keeps=2, sample=["each[1]"], new=1200, gone=1)
    run = RetryRun("each", "1 of 3 items have to run", items)
    print_preview(Retried(execution_id=None, retry_of="x", version=2, keeps=[], runs=[run]))
    shown = capsys.readouterr().out
    assert "1 of 3 items have to run: each[1]; 1,200 new, 1 gone" in shown


def test_a_run_shows_a_map_as_one_row_and_not_its_items(tmp_path: Path) -> None:
    flow = nodes(
        {**MAP, "on_item_failure": "skip"},
        {"id": "nap", "handler": "wait", "config": {"seconds": 0.1}},
        {
            "id": "call",
            "handler": "http_request",
            "condition": "false",
            "config": {"url": "https://example.com"},
        },
    )
    write(tmp_path, {"map.json": json.dumps(flow)})
    with dev(tmp_path) as url:
        env = {"PENSTOCK_URL": url}
        # an inline document isn't stored as a workflow, so its rows come from the graph
        watched = penstock("submit", "map.json", "--wait", cwd=tmp_path, env=env)
    run = penstock("run", "map.json", cwd=tmp_path)
    for done in (watched, run):
        assert (done.returncode, done.stderr) == (0, "")
        assert "each  " in done.stdout
        assert "each[" not in done.stdout
        ended = next(
            line for line in done.stdout.splitlines() if " each " in line and "COMPLETED" in line
        )
        assert ended.endswith("3 items, 1 failed")
