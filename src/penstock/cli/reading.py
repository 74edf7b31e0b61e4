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

from penstock.cli.python_flows import python_flow, read_python_flow
from penstock.cli.safe_text import counted
from penstock.definition.fields import kind_of
from penstock.definition.parse import Limits, check_values, form_of, parse, refuse
from penstock.definition.plan import Compiled, Plan, compile_document
from penstock.definition.problems import Problem
from penstock.definition.schema import schema_errors
from penstock.errors import InvalidWorkflow, PenstockError, SettingsError

STDIN = "-"
PYTHON = "python"
"""The form of a workflow that has no text, because it was made by Python."""
HANDLERS_HINT = "Name your own handlers with --handlers MODULE or --handlers FILE.py."
SERVER_HINT = "A server knows the handlers of its workers: start a worker that has it."


class Refused(PenstockError):
    """A value of the user that can't be used; the message says where it is and why."""


def shown_name(file: str) -> str:
    return "<stdin>" if file == STDIN else file


class Source(NamedTuple):
    """The text of a document, to say where in it a problem is."""

    file: str
    data: bytes
    form: str

    def located(self, problems: Sequence[Problem]) -> list[Problem]:
        if self.form == PYTHON:
            return list(problems)
        from penstock.definition.positions import located

        return located(problems, self.data, self.form)

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Around a call to a server, which knows the document, but not the file."""
        try:
            yield
        except InvalidWorkflow as error:
            # Their positions are those in the body of the request.
            problems = [
                msgspec.structs.replace(problem, line=msgspec.UNSET, column=msgspec.UNSET)
                for problem in error.problems
            ]
            raise refusal(self.file, self.located(problems), SERVER_HINT) from None


def read_source(file: str, limits: Limits) -> Source:
    """Read a file; raises `InvalidWorkflow` if it can't be read."""
    if python_flow(file) is not None:
        return Source(file, b"", PYTHON)
    return _read_text(file, limits)


def _read_text(file: str, limits: Limits) -> Source:
    data = read_bytes(file, limits.max_bytes)
    return Source(file, data, _form_of_text(data) if file == STDIN else form_of(file))


def parse_source(source: Source, limits: Limits) -> Any:
    """The document in a file; raises `InvalidWorkflow` if it isn't JSON or YAML.

    Of a workflow in Python, the module is imported, which registers its handlers.
    """
    flow = python_flow(source.file)
    if flow is not None:
        document = read_python_flow(flow)
        check_values(document, limits)
        return document
    return _parse_text(source, limits)


def _parse_text(source: Source, limits: Limits) -> Any:
    try:
        return parse(source.data, form=source.form, limits=limits)
    except InvalidWorkflow as error:
        raise InvalidWorkflow(source.located(error.problems)) from None


def read_file(file: str, limits: Limits) -> tuple[Any, Source]:
    """Read a document; an error has the file's name.

    `flow.py:flow` is a workflow in Python.
    """
    try:
        source = read_source(file, limits)
        return parse_source(source, limits), source
    except InvalidWorkflow as error:
        # The cause is the error of a Python module, which --debug shows.
        raise refusal(file, error.problems) from error.__cause__


def read_object(file: str, limits: Limits) -> tuple[dict[str, Any], Source]:
    """Read a document for a server, which takes objects only."""
    document, source = read_file(file, limits)
    if isinstance(document, dict):
        return document, source
    message = f"a workflow is an object with nodes, not {kind_of(document)}"
    problem = Problem("not_an_object", "", message)
    raise refusal(file, source.located([problem]))


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


def refusal(file: str, problems: Sequence[Problem], handlers_hint: str = HANDLERS_HINT) -> Refused:
    name = shown_name(file)
    hint = ""
    if any(problem.code == "unknown_handler" for problem in problems):
        hint = f"\n{handlers_hint}"
    if len(problems) == 1:
        return Refused(f"{problems[0].in_file(name)}{hint}")
    listed = "".join(f"\n  {problem.in_file(name)}" for problem in problems)
    return Refused(f"{name} has {counted(len(problems), 'problem')}:{listed}{hint}")


def read_input(text: str | None, limits: Limits) -> dict[str, Any]:
    """Read `--input`: JSON, or `@` and the name of a file with JSON or YAML."""
    value = {} if text is None else read_value(text, "--input", limits)
    if not isinstance(value, dict):
        source = f"--input {text}" if str(text).startswith("@") else "--input"
        raise Refused(f"{source}: the input must be an object, such as '{{\"user_id\": 7}}'")
    return value


def read_option(text: str | None, option: str) -> Any:
    """As `read_value`, with the limits that the settings have."""
    from penstock.config import Settings
    from penstock.runtime.document_files import document_limits

    return read_value(text, option, document_limits(Settings.load()))


def read_value(text: str | None, option: str, limits: Limits) -> Any:
    """Read the value of an option: JSON, or `@` and the name of a file with JSON or YAML."""
    if text is None:
        return None
    source = option
    try:
        if text.startswith("@"):
            source = f"{option} {text}"
            value = _parse_text(_read_text(text[1:], limits), limits)
        else:
            value = parse(text, limits=limits)
    except InvalidWorkflow as error:
        problem = error.problems[0]
        location = f" {problem.path}:" if problem.path else ""
        message = problem.message.replace("the document", f"the {option.removeprefix('--')}")
        raise Refused(f"{source}:{location} {message}") from None
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
            raise Refused(f"--handlers {origin}: {cause_of(error)}") from error


def cause_of(error: BaseException) -> str:
    """Why a module of the user can't be imported, in a line."""
    cause = f"{type(error).__name__}: {error}{_location_of(error)}"
    return f"{cause}; --debug shows the traceback"


def _location_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return ""  # its text says where already
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
