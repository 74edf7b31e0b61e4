"""The live table on a console of a fixed size."""

import os
from textwrap import dedent
from typing import Any

import pytest

from penstock.cli import live
from penstock.cli.ending import FailedNode
from penstock.cli.live import LiveScreen
from penstock.cli.progress import Progress, choose_rows, rows_of_plan
from penstock.definition.handler_configs import ConfigRules
from penstock.definition.plan import compile_document
from penstock.views.errors import Attempt, Error
from penstock.views.times import time_text
from tests.cli.commands import chain, nodes

START = 1_700_000_000.0


class Story:
    """A progress and what happens to it, at times in seconds after the start."""

    def __init__(self, document: dict[str, Any]) -> None:
        rules = ConfigRules(is_lenient=True)
        plan = compile_document(document, allow_unknown_handlers=True, config_rules=rules).plan
        self.progress = Progress(plan.name, rows_of_plan(plan), "0190", START)
        self.happens(0, None, "RUNNING")

    def happens(
        self, at: float, node: str | None, state: str, attempt: int = 0, reason: str | None = None
    ) -> None:
        event = {
            "seq": 1,
            "at": time_text(START + at),
            "node_id": node,
            "from": "PENDING",
            "to": state,
            "attempt": attempt,
            "reason": reason,
        }
        self.progress.apply(event)

    def runs(self, at: float, *names: str) -> None:
        for name in names:
            self.happens(at, name, "RUNNING", 1)

    def completes(self, at: float, *names: str) -> None:
        for name in names:
            self.happens(at, name, "COMPLETED", 1)


def picture(story: Story, at: float, columns: int = 80, rows: int = 24) -> str:
    size = os.terminal_size((columns, rows))
    screen = LiveScreen(clock=lambda: START + at, size=lambda: size)
    screen.watch(story.progress)
    drawn = screen.render()
    assert max(line.width for line in drawn) <= columns
    lines = [line.plain.rstrip() for line in drawn]
    assert len(lines) <= rows
    return "\n".join(lines) + "\n"


@pytest.fixture
def story() -> Story:
    document = nodes(
        {"id": "input", "handler": "input"},
        {
            "id": "fetch [bold]all[/bold]",
            "handler": "call_external_service",
            "dependencies": ["input"],
        },
        {"id": "flaky", "handler": "fail", "dependencies": ["input"]},
        {
            "id": "broken",
            "handler": "fail",
            "dependencies": ["input"],
            "retry": {"max_attempts": 1},
        },
        {"id": "letter", "handler": "noop", "dependencies": ["input"], "condition": "input.vip"},
        {"id": "output", "handler": "output", "dependencies": ["flaky"]},
    )
    tale = Story(document)
    tale.completes(0, "input")
    tale.runs(0.1, "fetch [bold]all[/bold]", "flaky", "broken")
    tale.happens(0.5, "flaky", "RETRYING", 1, "handler")
    tale.happens(0.6, "broken", "FAILED", 1, "handler")
    tale.happens(0.6, "letter", "SKIPPED", 0, "condition_false")
    message = "GET https://api.example.com/a/very/long/address/that/goes/on answered 503"
    tale.progress.learn("flaky", failed(message, START + 2.5))
    tale.progress.learn("broken", failed("broken [red]beyond[/red] repair", None))
    return tale


def failed(message: str, due_at: float | None) -> FailedNode:
    failure = Attempt(attempt=1, at=time_text(START), error=Error("handler", message))
    return FailedNode(1, [failure], due_at=due_at)


def test_an_optional_node_that_failed_is_dim_and_makes_nothing_red():
    optional = {"id": "extra", "handler": "fail", "optional": True}
    tale = Story(nodes(optional, {"id": "main", "handler": "fail"}))
    tale.runs(0.1, "extra", "main")
    tale.happens(0.2, "extra", "FAILED", 1, "handler")
    tale.progress.learn("extra", failed("no luck", None))
    cells = live._cells(tale.progress.rows["extra"], START + 1)
    assert {cells[name][1] for name in ("state", "node", "note")} == {"dim"}
    assert cells["note"][0] == "optional: no luck"
    assert not tale.progress.has_failures
    tale.happens(0.3, "main", "FAILED", 1, "handler")
    assert tale.progress.has_failures
    assert live._cells(tale.progress.rows["main"], START + 1)["state"][1] == "bold red"


def test_80_columns(story: Story):
    assert picture(story, at=1.3) == dedent("""\
        ⠸ test  0190

        state        node                    try      time
        ✓ completed  input
        ⠸ running    fetch [bold]all[/bold]          1.2 s
        ↻ retrying   flaky                   1/4     1.2 s  again in 1.2 …answered 503
        ✗ failed     broken                         500 ms  broken [red]b…/red] repair
        – skipped    letter                                 condition is …e: input.vip
        · pending    output

        ━━━━━━         3/6  1.3 s  1 failed  1 running  1 retrying  1 completed  1 skip…
        """)


def test_200_columns_have_room_for_handlers_and_whole_messages(story: Story):
    drawn = picture(story, at=1.3, columns=200, rows=50)
    assert (
        "flaky                   fail                   1/4     1.2 s  again in 1.2 s: GET https://api."
        in drawn
    )
    assert "goes/on answered 503\n" in drawn


def test_a_workflow_higher_than_the_screen_shows_what_matters_and_counts_the_rest():
    tale = Story(chain(f"n{i}" for i in range(10_000)))
    tale.runs(0.1, *(f"n{i}" for i in range(5000)))
    tale.completes(1, *(f"n{i}" for i in range(4000)))
    tale.happens(1.5, "n4000", "FAILED", 1, "handler")
    tale.completes(2, *(f"n{i}" for i in range(4001, 4995)))
    lines = picture(tale, at=3).splitlines()
    assert len(lines) == 23
    assert [line.split()[1:3] for line in lines[3:9]] == [
        ["failed", "n4000"],
        *(["running", f"n{i}"] for i in range(4995, 5000)),
    ]
    assert all(line.startswith("✓ completed  n49") for line in lines[9:20])
    assert lines[20] == "  and 9,983 more"
    assert lines[22].strip("━╸╺ ").split("  ") == [
        "4,995/10,000",
        "3.0 s",
        "1 failed",
        "5 running",
        "4,994 completed",
    ]


def test_a_large_workflow_that_has_not_begun_has_no_rows_yet():
    drawn = picture(Story(chain(f"n{i}" for i in range(100))), at=0.1)
    assert "  and 100 more\n" in drawn
    assert "0/100  100 ms" in drawn


def test_failures_never_take_more_than_a_third_of_the_screen():
    tale = Story(chain(f"n{i}" for i in range(100)))
    tale.runs(0.1, *(f"n{i}" for i in range(60)))
    for i in range(50):
        tale.happens(1, f"n{i}", "FAILED", 1, "handler")
    states = [row.state for row in choose_rows(tale.progress, 15)]
    assert states == ["FAILED"] * 5 + ["RUNNING"] * 10


def test_a_small_terminal_is_not_overrun(story: Story):
    picture(story, at=1.3, columns=40, rows=10)


def test_a_node_that_an_execution_gains_gets_a_row():
    tale = Story(nodes({"id": "each", "handler": "noop"}))
    tale.runs(0.1, "each[3]")
    assert "⠏ running    each[3]" in picture(tale, at=0.9)


def test_the_number_of_attempts_counts_those_that_a_lost_or_a_stopped_worker_gave_back() -> None:
    once = {"handler": "noop", "retry": {"max_attempts": 1}}
    tale = Story(nodes({"id": "lost", **once}, {"id": "stopped", **once}))
    for name, reason in (("lost", "lost"), ("stopped", "interrupted")):
        tale.happens(1, name, "RETRYING", 1, reason)
        tale.happens(2, name, "RUNNING", 2)
    drawn = picture(tale, 3)
    assert [line.split()[3] for line in drawn.splitlines() if "running " in line and "/" in line][
        :2
    ] == ["2/2", "2/2"]
