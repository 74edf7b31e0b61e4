"""The list of open approvals on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.commands import nodes, write
from tests.cli.serving import Desk, dev
from tests.waiting import until_now

OTHERS = 130
"""More than a page has."""


def test_mine_lists_as_many_as_the_limit_allows_behind_those_of_others(tmp_path: Path) -> None:
    of_others = {"title": "Theirs?", "approvers": {"keys": ["somebody's"]}}
    theirs = {"id": "ask", "for_each": list(range(OTHERS)), "handler": "approval"}
    documents = {
        "theirs.json": json.dumps(nodes({**theirs, "config": of_others})),
        "mine.json": json.dumps(
            nodes({**theirs, "for_each": [1, 2, 3], "config": {"title": "Yours?"}})
        ),
    }
    write(tmp_path, documents)
    with dev(tmp_path) as url:
        desk = Desk(tmp_path, url)
        desk.out("submit", "theirs.json")
        _until_open(desk, OTHERS)
        desk.out("submit", "mine.json")
        _until_open(desk, OTHERS + 3)

        mine = _listed(desk, "--mine", "--limit", "2")
        assert [item["title"] for item in mine] == ["Yours?", "Yours?"]
        assert len(_listed(desk, "--mine")) == 3
        assert [item["title"] for item in _listed(desk, "--limit", "2")] == ["Theirs?"] * 2


def _listed(desk: Desk, *arguments: str) -> list[Any]:
    return list(json.loads(desk.out("approvals", *arguments, "--json")))


def _until_open(desk: Desk, count: int) -> None:
    until_now(lambda: len(_listed(desk, "--limit", "500")) == count, f"{count} are open")
