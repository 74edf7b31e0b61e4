"""`penstock run`."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from penstock.cli.ending import Ending
    from penstock.cli.screens import Screen
    from penstock.cli.session import Request
    from penstock.definition.problems import Problem

EPILOG = """Examples:

\b
  penstock run workflow.json --input '{"user_id": 7}'
  penstock run report.yaml --input @input.json --handlers handlers.py
  penstock run flow.py:flow
  penstock run workflow.json --mock --json | jq .output

Exit codes: 0 it completed; 1 it failed or was cancelled; 2 an argument, the document or the input
can't be used, and nothing was run; 130 Ctrl-C (the first one cancels the execution, the second one
ends the process at once)."""


@click.command(short_help="Run a workflow once, here, and show its progress.", epilog=EPILOG)
@click.argument("file", metavar="FILE")
@click.option(
    "-i",
    "--input",
    "given",
    metavar="JSON|@FILE",
    help="The execution's input: an object, or a file with one.",
)
@click.option(
    "--handlers",
    multiple=True,
    metavar="MODULE|FILE.py",
    help="Where your own handlers are; repeatable.",
)
@click.option(
    "--store",
    metavar="URL",
    help="Where to store the execution, e.g. sqlite:///work.db. Default: a temporary store.",
)
@click.option(
    "--mock", is_flag=True, help="Answer HTTP and LLM calls with stand-ins instead of making them."
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="Label the execution; repeatable.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Treat unknown fields as errors instead of warnings.",
)
@click.option(
    "--timeout", type=float, metavar="SECONDS", help="Cancel the execution after this time."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the execution as one JSON object, and nothing else.",
)
@click.option(
    "--logs",
    is_flag=True,
    help="Show the logs of all handlers at the end, not only of those that failed.",
)
@click.option("--plain", is_flag=True, help="A line for each change instead of the live table.")
@click.option(
    "--no-color", is_flag=True, help="No colours. NO_COLOR in the environment does the same."
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def run(file: str, timeout: float | None, **options: Any) -> int:
    """Run the workflow in FILE once, here, and show its progress.

    FILE is JSON (// comment lines are allowed) or YAML, or - for standard input. FILE.py:NAME and
    MODULE:NAME are a penstock.Workflow or a dict in Python, whose module also brings its handlers.
    No server is needed: engine and handlers run in this process, and the store is a temporary one
    unless --store names one.
    """
    if timeout is not None and not 0 < timeout < math.inf:
        raise click.BadParameter("must be a number of seconds above 0", param_hint="--timeout")
    if options["as_json"]:
        return _run_silently(file, timeout, options)
    return _run_shown(file, timeout, options)


def _run_silently(file: str, timeout: float | None, options: dict[str, Any]) -> int:
    from penstock.cli.safe_text import json_text
    from penstock.cli.screens import SilentScreen
    from penstock.cli.streams import captured, exclusive_stdout

    def show(ending: Ending) -> None:
        stdout.write(json_text(ending.result.view) + "\n")
        stdout.flush()

    screen = SilentScreen()
    with exclusive_stdout() as stdout, captured(screen.stray):
        request = _request(file, timeout, options)
        return _execute(request, screen, show)


def _run_shown(file: str, timeout: float | None, options: dict[str, Any]) -> int:
    from penstock.cli.report import report
    from penstock.cli.streams import captured

    def show(ending: Ending) -> None:
        screen.show(report(ending, all_logs=options["logs"], debug=options["debug"]))

    with (
        chosen_screen(plain=options["plain"], no_color=options["no_color"]) as screen,
        captured(screen.stray),
    ):
        return _execute(_request(file, timeout, options), screen, show)


@contextmanager
def chosen_screen(*, plain: bool, no_color: bool) -> Iterator[Screen]:
    # An ASCII terminal shows ? instead of failing.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    if plain or not sys.stdout.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
        from penstock.cli.screens import LineScreen

        yield LineScreen(sys.stdout)
        return
    from penstock.cli.live import LiveScreen
    from penstock.cli.streams import exclusive_terminal

    screen = LiveScreen(no_color=no_color)
    with exclusive_terminal(screen.stray) as terminal:
        screen.open(terminal)
        yield screen


def _request(file: str, timeout: float | None, options: dict[str, Any]) -> Request:
    """Read and check everything before a store is opened, so that an error changes nothing."""
    from dataclasses import replace

    from penstock.cli import reading
    from penstock.cli.session import Request
    from penstock.config import Settings
    from penstock.runtime.document_files import config_rules, document_limits
    from penstock.worker.registry import registered

    flags = {
        "http_private": True,
        "mock_services": options["mock"] or None,
        "store": options["store"],
        "handlers": options["handlers"] or None,
    }
    settings = Settings.load(flags)
    limits = document_limits(settings)
    if file == reading.STDIN and options["given"] == "@-":
        raise reading.Refused(
            "standard input can't be the document and --input at once; put one of them in a file"
        )

    document, source = reading.read_file(file, limits)
    execution_input = reading.read_input(options["given"], limits)
    labels = reading.read_labels(options["labels"])
    reading.import_handlers(settings.handlers)

    compiled = reading.compile_file(
        source,
        document,
        handlers=registered.defaults(),
        strict=options["strict"],
        limits=limits,
        config_rules=config_rules(settings),
        checked=True,
    )
    reading.check_input(compiled.plan, execution_input)
    _warn(file, compiled.warnings)
    if options["store"] is None:
        # A temporary store has no other executions, so there is nothing to wait for once this
        # one has ended.
        grace_seconds = min(settings.shutdown_grace_seconds, 0.5)
        settings = replace(settings, shutdown_grace_seconds=grace_seconds)
    return Request(document, settings, execution_input, labels, options["store"], timeout)


def _warn(file: str, warnings: Sequence[Problem]) -> None:
    from penstock.cli.reading import shown_name
    from penstock.cli.safe_text import clean

    for problem in warnings:
        print(clean(f"warning: {problem.in_file(shown_name(file))}"), file=sys.stderr)


def _execute(request: Request, screen: Screen, show: Callable[[Ending], None]) -> int:
    from penstock.cli.session import Session
    from penstock.runtime import run_loop

    return run_loop(Session(request, screen).run(show))
