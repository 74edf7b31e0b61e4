"""Reading of files, flags and standard input into checked values.

What can't be used is refused, with where it is and why.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from penstock.cli.safe_text import counted
from penstock.config import Settings
from penstock.definition.handler_configs import ConfigRules
from penstock.definition.parse import Limits, form_of, parse, refuse
from penstock.definition.plan import Compiled, Plan, compile_document
from penstock.definition.problems import Problem
from penstock.definition.schema import schema_errors
from penstock.errors import InvalidWorkflow, PenstockError, SettingsError

STDIN = "-"


class Refused(PenstockError):
    """A value of the user that can't be used; the message says where it is and why."""


def document_limits(settings: Settings) -> Limits:
    return Limits(
        settings.document_max_bytes, settings.document_max_nodes, settings.document_max_depth
    )


def config_rules(settings: Settings) -> ConfigRules:
    """How configs are judged, with the handlers that this process has imported."""
    from penstock.worker.registry import registered

    return ConfigRules(registered.config_checks(), settings.mock_services, settings.names_models)


def shown_name(file: str) -> str:
    return "<stdin>" if file == STDIN else file


class Source(NamedTuple):
    """The text of a document, to say where in it a problem is."""

    file: str
    data: bytes
    form: str

    def located(self, problems: Sequence[Problem]) -> list[Problem]:
        from penstock.definition.positions import located

        return located(problems, self.data, self.form)

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Around a call to a server, which knows the document, but not the file."""
        try:
            yield
        except InvalidWorkflow as error:
            problems = [
                msgspec.structs.replace(problem, line=None, column=None)
                for problem in error.problems
            ]
            raise refusal(self.file, self.located(problems)) from None


def read_source(file: str, limits: Limits) -> Source:
    """Read a file; raises `InvalidWorkflow` if it can't be read."""
    data = read_bytes(file, limits.max_bytes)
    return Source(file, data, _form_of_text(data) if file == STDIN else form_of(file))


def parse_source(source: Source, limits: Limits) -> Any:
    """The document in a file; raises `InvalidWorkflow` if it isn't JSON or YAML."""
    try:
        return parse(source.data, form=source.form, limits=limits)
    except InvalidWorkflow as error:
        raise InvalidWorkflow(source.located(error.problems)) from None


def read_document(file: str, limits: Limits) -> Any:
    """Read a document; raises `InvalidWorkflow` if it can't be read, or isn't JSON or YAML."""
    return parse_source(read_source(file, limits), limits)


def read_file(file: str, limits: Limits) -> tuple[Any, Source]:
    """Read a document as `read_document` does, with the file's name in the error."""
    try:
        source = read_source(file, limits)
        return parse_source(source, limits), source
    except InvalidWorkflow as error:
        raise refusal(file, error.problems) from None


def read_bytes(file: str, limit: int) -> bytes:
    """Read at most one byte over the limit, which the parser then refuses."""
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
    """The format of standard input, which has no extension: JSON if it starts like JSON."""
    lines = (line.strip() for line in data.removeprefix(b"\xef\xbb\xbf").splitlines())
    first = next((line for line in lines if line and not line.startswith(b"//")), b"{")
    return "jsonc" if first[:1] in (b"{", b"[") else "yaml"


def compile_file(source: Source, document: Any, **options: Any) -> Compiled:
    """Compile as `compile_document` does, with the place in the file in the error."""
    try:
        compiled = compile_document(document, **options)
    except InvalidWorkflow as error:
        raise refusal(source.file, source.located(error.problems)) from None
    compiled.warnings = source.located(compiled.warnings)
    return compiled


def refusal(file: str, problems: Sequence[Problem]) -> Refused:
    name = shown_name(file)
    hint = ""
    if any(problem.code == "unknown_handler" for problem in problems):
        hint = "\nName your own handlers with --handlers MODULE or --handlers FILE.py."
    if len(problems) == 1:
        return Refused(f"{problem_line(name, problems[0])}{hint}")
    listed = "".join(f"\n  {problem_line(name, problem)}" for problem in problems)
    return Refused(f"{name} has {counted(len(problems), 'problem')}:{listed}{hint}")


def problem_line(name: str, problem: Problem) -> str:
    """`flow.json:12:7 nodes[2].config.ulr: …`, or `flow.json: …` if the place isn't known."""
    separator = "" if problem.position else ":"
    return f"{name}{problem.position}{separator} {problem}"


def read_input(text: str | None, limits: Limits) -> dict[str, Any]:
    """Read `--input`: JSON, or `@` and the name of a file with JSON or YAML."""
    if text is None:
        return {}
    source = "--input"
    try:
        if text.startswith("@"):
            source = f"--input {text}"
            value = read_document(text[1:], limits)
        else:
            value = parse(text, limits=limits)
    except InvalidWorkflow as error:
        problem = error.problems[0]
        location = f" {problem.path}:" if problem.path else ""
        message = problem.message.replace("the document", "the input")
        raise Refused(f"{source}:{location} {message}") from None

    if not isinstance(value, dict):
        raise Refused(f"{source}: the input must be an object, such as '{{\"user_id\": 7}}'")
    return value


def check_input(plan: Plan, execution_input: Mapping[str, Any]) -> None:
    """Check the input before a store is opened, so that a refused one leaves no file behind."""
    if plan.input_schema is None:
        return
    errors = schema_errors(plan.input_schema, {**plan.input, **execution_input})
    if errors:
        hint = "" if execution_input else "; give one with --input '{…}'"
        listed = "; ".join(errors)
        raise Refused(f"the input doesn't fit the workflow's input_schema: {listed}{hint}")


def read_labels(texts: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for item in texts:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise Refused(f"--label {item}: write it as NAME=VALUE")
        labels[name.strip()] = value
    return labels


def import_handlers(origins: Sequence[str]) -> None:
    """Import the modules with `@handler`s; an error in one is reported as the user's."""
    from penstock.worker.loading import load_handlers

    for origin in origins:
        try:
            load_handlers([origin])
        except SettingsError as error:
            raise Refused(f"--handlers {origin}: {error}") from None
        except (Exception, SystemExit) as error:
            cause = f"{type(error).__name__}: {error}{_location_of(error)}"
            message = f"--handlers {origin}: {cause}; --debug shows the traceback"
            raise Refused(message) from error


def _location_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return ""  # its text says where already
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
