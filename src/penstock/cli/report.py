"""The report at the end of a run: failures and advice, logs, output, and a summary."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from penstock.cli.ending import FAILED_SHOWN, Ending, FailedNode
from penstock.cli.remote import seconds_between
from penstock.cli.safe_text import clean, counted, duration, json_text, one_line
from penstock.cli.screens import Spans
from penstock.engine.reasons import HINTS, ErrorCategory
from penstock.views.errors import Attempt, Error
from penstock.views.executions import Execution
from penstock.views.times import seconds_of

LOG_LINES_SHOWN = 20
OUTPUT_LINES_SHOWN = 40
LINE_LENGTH = 400

STATE_STYLES = {"COMPLETED": "bold green", "FAILED": "bold red", "CANCELLED": "bold magenta"}
_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+), in (.+)$', re.MULTILINE)


def report(ending: Ending, *, all_logs: bool = False, debug: bool = False) -> Iterator[Spans]:
    yield from _failures(ending, debug=debug)
    yield from _logs(ending, everything=all_logs)
    yield from _output(ending)
    yield from _closing(ending)


def _failures(ending: Ending, *, debug: bool) -> Iterator[Spans]:
    harmless = [node_id for node_id in ending.nodes if ending.failed_harmlessly(node_id)]
    for node_id in harmless[:FAILED_SHOWN]:
        yield from _harmless_failure(node_id, ending.failed.get(node_id))
    if harmless:
        yield []

    failed = [
        node_id
        for node_id, node in ending.nodes.items()
        if node.state == "FAILED" and not ending.failed_harmlessly(node_id)
    ]
    for node_id in failed[:FAILED_SHOWN]:
        if node_id in ending.failed:
            yield from _failure(node_id, ending.failed[node_id], debug=debug)
    if len(failed) > FAILED_SHOWN:
        rest = counted(len(failed) - FAILED_SHOWN, "more failed node")
        yield [(f"… and {rest}; --json has them all", "dim")]
        yield []

    error = ending.execution.error
    if error is not None and error.node_id is None:
        yield [("✗ ", "bold red"), (one_line(error.message, LINE_LENGTH), "")]
        yield from _hint(error.category)
        yield []


def _harmless_failure(node_id: str, node: FailedNode | None) -> Iterator[Spans]:
    """An optional node that failed: one dim line, as nothing came of it."""
    error = node.failures[-1].error if node is not None and node.failures else None
    message = f": {one_line(error.message, LINE_LENGTH)}" if error is not None else ""
    yield [(f"✗ {one_line(node_id)} failed, and is optional{message}", "dim")]


def _failure(node_id: str, node: FailedNode, *, debug: bool) -> Iterator[Spans]:
    error = node.failures[-1].error if node.failures else None
    if error is None:
        return
    attempts = len(node.failures) + node.dropped
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    yield [
        ("✗ ", "bold red"),
        (one_line(node_id), "bold"),
        (f" failed{tries}  ", "red"),
        (error.category, "dim"),
    ]

    for line in clean(error.message).splitlines()[:LOG_LINES_SHOWN]:
        yield [(f"  {line[:LINE_LENGTH]}", "")]
    yield from _earlier(node.failures, error.message)
    if error.detail is not None:
        yield [("  detail: ", "dim"), (one_line(json_text(error.detail), LINE_LENGTH), "dim")]
    yield from _traceback(error, debug=debug)
    yield from _hint(error.category)
    yield []


def _earlier(failures: list[Attempt], last: str) -> Iterator[Spans]:
    """Errors of earlier attempts that failed in another way than the last one."""
    for failure in failures[:-1]:
        if failure.error is not None and failure.error.message != last:
            message = one_line(failure.error.message, LINE_LENGTH)
            yield [(f"  attempt {failure.attempt}: {message}", "dim")]


def _traceback(error: Error, *, debug: bool) -> Iterator[Spans]:
    if not error.traceback:
        return
    if debug:
        for line in clean(error.traceback).splitlines():
            yield [(f"  {line}", "dim")]
    elif frames := _FRAME.findall(error.traceback):
        file, line, function = frames[-1]
        yield [(f"  at {one_line(file)}:{line} in {one_line(function)}", "dim")]


def _hint(category: str) -> Iterator[Spans]:
    if category in HINTS:
        about_debug = " --debug shows it." if category == ErrorCategory.HANDLER else ""
        yield [("  → ", "yellow"), (f"{HINTS[category]}{about_debug}", "")]


def _logs(ending: Ending, *, everything: bool) -> Iterator[Spans]:
    for node_id, attempt, text in ending.logs:
        node = ending.nodes.get(node_id)
        is_failed = node is not None and node.state == "FAILED"
        has_failed = is_failed and not ending.failed_harmlessly(node_id)
        if not (everything or has_failed):
            continue

        lines = clean(text).splitlines()
        yield [("log of ", "dim"), (one_line(node_id), "bold"), (f", attempt {attempt}", "dim")]
        if not everything and len(lines) > LOG_LINES_SHOWN:
            hidden = counted(len(lines) - LOG_LINES_SHOWN, "line")
            yield [(f"  … {hidden} before; --logs shows all", "dim")]
            lines = lines[-LOG_LINES_SHOWN:]
        yield from ([(f"  {line}", "")] for line in lines)
        yield []


def _output(ending: Ending) -> Iterator[Spans]:
    output = ending.execution.output
    if output is None or (ending.execution.state != "COMPLETED" and not output):
        return
    lines = _pretty(output).splitlines()
    yield [("output", "bold")]
    yield from ([(f"  {line}", "")] for line in lines[:OUTPUT_LINES_SHOWN])
    if len(lines) > OUTPUT_LINES_SHOWN:
        hidden = counted(len(lines) - OUTPUT_LINES_SHOWN, "more line")
        yield [(f"  … {hidden}; --json prints everything", "dim")]
    yield []


def _pretty(value: Any) -> str:
    lines = json_text(value, indent=2).split("\n")
    for number, line in enumerate(lines):
        if len(line) > LINE_LENGTH:
            lines[number] = line[:LINE_LENGTH] + "…"
    return "\n".join(lines)


def _closing(ending: Ending) -> Iterator[Spans]:
    state = ending.execution.state
    counts: dict[str, int] = {}
    for node in ending.nodes.values():
        counts[node.state] = counts.get(node.state, 0) + 1

    listed = ", ".join(f"{count:,} {name.lower()}" for name, count in counts.items())
    tokens = ending.execution.tokens
    if tokens:
        listed += f"; {counted(tokens.total, 'token')}"
    yield [
        (state, STATE_STYLES.get(state, "bold")),
        (f" {_how_long(ending.execution)}: {listed}", ""),
    ]
    if ending.timed_out:
        yield [("  → ", "yellow"), ("It was cancelled because the --timeout was over.", "")]
    elif ending.interrupted:
        yield [("  → ", "yellow"), ("It was interrupted.", "")]


def _how_long(execution: Execution) -> str:
    """How long it took or, of one that hasn't ended, how long it has run."""
    start = execution.started_at or execution.created_at
    took = seconds_between(start, execution.finished_at)
    if took is not None:
        return f"in {duration(took)}"
    running = time.time() - seconds_of(start)
    return f"for {duration(max(running, 0.0))}"
