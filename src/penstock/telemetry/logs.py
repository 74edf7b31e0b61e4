"""One pipeline for everything that is logged: ours, the libraries', the handlers'.

A record is one line. Our code logs through `logging`, and so does everybody else's.
`configure_logging` puts one handler on the root logger:

    {"timestamp":"…","level":"info","logger":"mail","event":"no answer","execution_id":"…",…}

- Inside a handler's run the attempt's ids are on every line, also from threads and from tasks that
  it started.
- Ids, outputs and messages come from documents and from the network. Whatever could end a line or
  act on a terminal is written as an escape; a traceback in console form is indented, so that no
  line of it looks like a record.
- The attempt's secrets are taken out.

The handler that keeps an attempt's own log (`penstock.worker.logs`) stands beside this one on the
root logger.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from penstock.config import Settings
from penstock.telemetry.scope import current_scope

_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_WORD = re.compile(r"[^\s=\"']+")
_FIRST = ("timestamp", "level", "logger", "event")
_PLAIN = (bool, int, float, type(None))
INDENT = "    | "


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes each record as one line, also one that can't be formatted."""

    def __init__(self, stream: TextIO, root_level: int) -> None:
        super().__init__(stream)
        self.root_level = root_level
        """What the root logger had before."""

    def format(self, record: logging.LogRecord) -> str:
        try:
            return super().format(record)
        except Exception as error:  # noqa: BLE001 -- wrong arguments must not fail the caller
            message = (
                f"can't be logged ({type(error).__name__}):"
                f" {_repr(record.msg)} {_repr(record.args)}"
            )
            plain = logging.LogRecord(
                record.name, record.levelno, record.pathname, record.lineno, message, None, None
            )
            return super().format(plain)


def configure_logging(settings: Settings, stream: TextIO | None = None) -> None:
    """Log to `stream` (standard error) from now on.

    Called again, it replaces what it set up before.
    """
    restore_logging()
    root = logging.getLogger()
    target = stream or sys.stderr
    form = settings.log_format
    if form == "auto":
        form = "console" if target.isatty() else "json"
    renderers: list[Processor] = [_in_order, _to_json]
    if form == "console":
        renderers = _console(colors=target.isatty())

    handler = LineHandler(target, root.level)
    handler.setLevel(settings.log_level)
    handler.setFormatter(_formatter(renderers))
    # never above WARNING: what a handler logs is stored with its attempt, however quiet the
    # service is
    root.setLevel(min(handler.level, logging.WARNING))
    root.addHandler(handler)
    structlog.configure(
        processors=[*_collect(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def restore_logging() -> None:
    """As it was before `configure_logging`."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if not isinstance(handler, LineHandler):
            continue
        root.removeHandler(handler)
        root.setLevel(handler.root_level)
        structlog.reset_defaults()


def escaped(text: str) -> str:
    """On one line, and nothing in it that a terminal would act on."""
    return _CONTROLS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character < "\x80":
        return repr(character)[1:-1]
    return f"\\u{ord(character):04x}"


def _formatter(renderers: list[Processor]) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_collect(), structlog.stdlib.ExtraAdder(), _drop_formatted],
        processors=[
            _add_time,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _add_scope,
            *renderers,
        ],
    )


def _collect() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.StackInfoRenderer(),
    ]


def _drop_formatted(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """What another handler's formatter has left on the record: it looks like an extra."""
    event.pop("message", None)
    event.pop("asctime", None)
    return event


def _add_time(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    at = datetime.fromtimestamp(event["_record"].created, UTC)
    event["timestamp"] = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _add_scope(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Last, so that nothing that a handler logs can pass for another attempt's."""
    scope = current_scope.get()
    if scope is None:
        return event
    cleaned: EventDict = {
        name: _without_secrets(value, scope.clean) for name, value in event.items()
    }
    return {**cleaned, **scope.marks}


def _without_secrets(value: Any, clean: Callable[[Any], Any]) -> Any:
    if isinstance(value, _PLAIN):
        return value
    return clean(value if isinstance(value, str) else _as_json(value))


def _as_json(value: Any) -> Any:
    """Texts, lists and dictionaries only: a secret could hide in anything else."""
    try:
        return json.loads(json.dumps(value, default=_repr))
    except (TypeError, ValueError, RecursionError):
        return _repr(value)


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 -- somebody else's code, and only for a log
        return f"(a {type(value).__name__} that can't be shown)"


def _in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    first = {name: event.pop(name) for name in _FIRST if name in event}
    return {**first, **event}


def _to_json(_logger: WrappedLogger, _method: str, event: Mapping[str, Any]) -> str:
    """ASCII only: JSON's own escapes leave nothing that could end a line or act on a terminal."""
    try:
        return json.dumps(event, default=_repr, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        # NaN, keys that aren't text, something that contains itself
        texts = {
            str(name): value if isinstance(value, str) else _repr(value)
            for name, value in event.items()
        }
        return json.dumps(texts, separators=(",", ":"))


def _console(*, colors: bool) -> list[Processor]:
    render = structlog.dev.ConsoleRenderer(
        colors=colors, exception_formatter=structlog.dev.plain_traceback
    )
    return [_make_safe, render]


def _make_safe(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    safe: EventDict = {escaped(str(name)): _for_console(value) for name, value in event.items()}
    for name in _FIRST:
        if name in event:
            safe[name] = escaped(str(event[name]))
    for name in ("exception", "stack"):
        if name in event:
            lines = str(event[name]).split("\n")
            safe[name] = "\n".join(INDENT + escaped(line) for line in lines)
    return safe


class _Verbatim:
    """A text that the renderer writes as it is.

    It writes what it doesn't know by its `repr`; a plain text it might quote and escape once more.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _for_console(value: Any) -> Any:
    """A value as the console has it, quoted where it could be read as more than one value."""
    if isinstance(value, _PLAIN):
        return value
    if not isinstance(value, str):
        return _Verbatim(escaped(_repr(value)))
    text = escaped(value)
    if _WORD.fullmatch(text):
        return text
    return _Verbatim('"' + text.replace('"', '\\"') + '"')
