"""From what was written on the command line to checked values; what can't be used is refused with its place."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.cli.safe_text import counted
from penstock.config import Settings
from penstock.definition.parse import Limits, form_of, parse, refuse
from penstock.definition.plan import Compiled, Plan, compile_document
from penstock.definition.problems import Problem
from penstock.definition.schema import schema_errors
from penstock.errors import InvalidWorkflow, PenstockError, SettingsError

STDIN = "-"


class Refused(PenstockError):
    """What the user gave can't be used; the message says where and why."""


def document_limits(settings: Settings) -> Limits:
    return Limits(
        settings.document_max_bytes, settings.document_max_nodes, settings.document_max_depth
    )


def shown_name(file: str) -> str:
    return "<stdin>" if file == STDIN else file


def read_document(file: str, limits: Limits) -> Any:
    """Raises `InvalidWorkflow` for what can't be read, or isn't JSON or YAML."""
    data = read_bytes(file, limits.max_bytes)
    return parse(data, form=_form_of_text(data) if file == STDIN else form_of(file), limits=limits)


def read_file(file: str, limits: Limits) -> Any:
    """As `read_document`, with the file's name in the error."""
    try:
        return read_document(file, limits)
    except InvalidWorkflow as error:
        raise refusal(file, error.problems) from None


def read_bytes(file: str, limit: int) -> bytes:
    """One byte over the limit at most: the parser refuses it then, and no file fills the memory."""
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(limit + 1)
        with Path(file).open("rb") as opened:
            return opened.read(limit + 1)
    except FileNotFoundError:
        refuse("unreadable", "there is no such file")
    except OSError as error:
        refuse("unreadable", f"it can't be read: {error.strerror}")


def _form_of_text(data: bytes) -> str:
    """Standard input has no extension: a document that starts as JSON does is JSON."""
    lines = (line.strip() for line in data.removeprefix(b"\xef\xbb\xbf").splitlines())
    first = next((line for line in lines if line and not line.startswith(b"//")), b"{")
    return "jsonc" if first[:1] in (b"{", b"[") else "yaml"


def compile_file(file: str, document: Any, **options: Any) -> Compiled:
    """As `compile_document`, with the file's name in the error."""
    try:
        return compile_document(document, **options)
    except InvalidWorkflow as error:
        raise refusal(file, error.problems) from None


def refusal(file: str, problems: Sequence[Problem]) -> Refused:
    name = shown_name(file)
    hint = ""
    if any(problem.code == "unknown_handler" for problem in problems):
        hint = "\nHandlers of your own come with --handlers MODULE or --handlers FILE.py."
    if len(problems) == 1:
        return Refused(f"{name}: {problems[0]}{hint}")
    listed = "".join(f"\n  {problem}" for problem in problems)
    return Refused(f"{name} has {counted(len(problems), 'problem')}:{listed}{hint}")


def read_input(given: str | None, limits: Limits) -> dict[str, Any]:
    """`--input`: JSON, or `@` and the name of a file with JSON or YAML."""
    if given is None:
        return {}
    source = "--input"
    try:
        if given.startswith("@"):
            source = f"--input {given}"
            value = read_document(given[1:], limits)
        else:
            value = parse(given, limits=limits)
    except InvalidWorkflow as error:
        problem = error.problems[0]
        location = f" {problem.path}:" if problem.path else ""
        raise Refused(
            f"{source}:{location} {problem.message.replace('the document', 'the input')}"
        ) from None
    if not isinstance(value, dict):
        raise Refused(f"{source}: the input must be an object, such as '{{\"user_id\": 7}}'")
    return value


def check_input(plan: Plan, given: Mapping[str, Any]) -> None:
    """As the engine does, but before a store is opened: a refused input leaves no file behind."""
    if plan.input_schema is None:
        return
    errors = schema_errors(plan.input_schema, {**plan.input, **given})
    if errors:
        hint = "" if given else "; give one with --input '{…}'"
        raise Refused(
            "the input doesn't fit the workflow's input_schema: " + "; ".join(errors) + hint
        )


def read_labels(given: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise Refused(f"--label {item}: write it as NAME=VALUE")
        labels[name.strip()] = value
    return labels


def import_handlers(origins: Sequence[str]) -> None:
    """Import the modules with `@handler`s; a mistake in one is the user's to mend, so it is told as one."""
    from penstock.worker.loading import load_handlers

    for origin in origins:
        try:
            load_handlers([origin])
        except SettingsError as error:
            raise Refused(f"--handlers {origin}: {error}") from None
        except (Exception, SystemExit) as error:
            location = _location_of(error)
            message = f"--handlers {origin}: {type(error).__name__}: {error}{location}; --debug shows the traceback"
            raise Refused(message) from error


def _location_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return ""  # its text has the place already
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})" if trace else ""
