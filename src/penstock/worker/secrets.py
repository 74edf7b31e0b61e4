"""Secrets: the worker looks them up by name when a task starts.

They are never stored: a document has only `{{ secrets.NAME }}`. A value is read from the
environment or from `secrets_file` at each use, so that a rotated secret needs no restart.
`redaction` takes the values out of what the worker reports.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from penstock.config import SecretRule, Settings
from penstock.definition.model import HANDLER_ALIASES, NOTIFY
from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal

PREFIX = "PENSTOCK_SECRET_"
# A name becomes a file's name below: no separators, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")

CALLING_HANDLERS = frozenset({"call_external_service", "llm_service", NOTIFY})
"""The handlers that look at a secret's hosts before they send anything."""


class SecretInUse(NamedTuple):
    """A secret that an attempt uses."""

    name: str
    value: str
    hosts: tuple[str, ...] | None
    """The only hosts that an attempt which holds it may call; None: any."""

    def may_go_to(self, host: str) -> bool:
        if self.hosts is None:
            return True
        host = host.lower().rstrip(".")
        for allowed in self.hosts:
            wanted = allowed.lower().strip("[]").rstrip(".")
            if host == wanted or (wanted.startswith("*.") and host.endswith(wanted[1:])):
                return True
        return False

    def __repr__(self) -> str:
        return f"SecretInUse({self.name!r})"


class Secrets:
    """The secrets of a worker: where it finds them.

    `secrets_file` is a directory with one file per secret (as Docker and Kubernetes mount them), a
    `.toml` or `.json` file with one table of texts, or a file of `NAME=value` lines.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str] | None = None) -> None:
        self._path = Path(settings.secrets_file) if settings.secrets_file else None
        self._environ = os.environ if environ is None else environ
        self._rules = settings.secret_rules

    def get(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise Terminal(
                f"'{name[:80]}' can't be the name of a secret: "
                "letters, digits, '_', '-' and '.' are allowed",
                category=ErrorCategory.SECRET,
            )

        value = self._from_environment(name)
        if value is None and self._path is not None:
            value = _from_path(self._path, name)
        if value is None:
            raise Terminal(
                f"there is no secret '{name}': {self._advice(name)}", category=ErrorCategory.SECRET
            )
        return value

    def _from_environment(self, name: str) -> str | None:
        for variable in (PREFIX + name, PREFIX + name.upper()):
            value = self._environ.get(variable)
            if value:
                return value
        return None

    def use(self, name: str, handler: str, workflow: str) -> SecretInUse:
        """The secret for an attempt of this handler in this workflow.

        Raises `Terminal` where it isn't allowed.
        """
        rule = self._rules.get(name.upper())
        if rule is None:
            return SecretInUse(name, self.get(name), None)
        _check(rule, name, handler, workflow)
        return SecretInUse(name, self.get(name), rule.hosts)

    def _advice(self, name: str) -> str:
        variable = f"set {PREFIX}{name} in the worker's environment"
        if self._path is None:
            return f"{variable}, or point PENSTOCK_SECRETS_FILE to a file that has it"
        return f"{variable}, or put it into {self._path} (PENSTOCK_SECRETS_FILE)"


def _check(rule: SecretRule, name: str, handler: str, workflow: str) -> None:
    where = f"penstock.toml of the worker, [secrets.{name}]"
    if rule.workflows is not None and workflow not in rule.workflows:
        raise Terminal(
            f"the workflow {workflow!r} may not use the secret '{name}': "
            f"its workflows are named in {where}",
            category=ErrorCategory.SECRET,
        )

    if rule.handlers is not None:
        is_allowed = handler in {HANDLER_ALIASES.get(alias, alias) for alias in rule.handlers}
    else:
        # what a handler of somebody's own does with it can't be seen from here
        is_allowed = rule.hosts is None or handler in CALLING_HANDLERS
    if not is_allowed:
        raise Terminal(
            f"the handler {handler!r} may not use the secret '{name}': "
            f"its handlers are named in {where}",
            category=ErrorCategory.SECRET,
        )


def _from_path(path: Path, name: str) -> str | None:
    try:
        if path.is_dir():
            file = path / name
            return _without_newline(file.read_text(encoding="utf-8")) if file.is_file() else None
        value = _table(path).get(name)
    except (OSError, ValueError) as error:
        # The text of a parser's error may quote the file, hence only its type.
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        message = f"the secrets in {path} can't be read: {reason}"
        raise Terminal(message, category=ErrorCategory.SECRET) from None

    if value is not None and not isinstance(value, str):
        raise Terminal(
            f"the secret '{name}' in {path} isn't text: put it in quotes",
            category=ErrorCategory.SECRET,
        )
    return value


def _without_newline(text: str) -> str:
    """The value without one last newline, which editors and `echo` add.

    A key in PEM form has others, which stay.
    """
    return text.removesuffix("\n").removesuffix("\r")


def _table(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        import tomllib  # noqa: PLC0415 -- one of three formats

        return tomllib.loads(text)
    if path.suffix == ".json":
        table = json.loads(text)
        return table if isinstance(table, dict) else {}

    values = {}
    for line in text.splitlines():
        if "=" in line and not line.lstrip().startswith("#"):
            name, value = _parse_line(line)
            values[name] = value
    return values


def _parse_line(line: str) -> tuple[str, str]:
    name, _, value = line.strip().removeprefix("export ").partition("=")
    value = value.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    if is_quoted:
        value = value[1:-1]
    return name.strip(), value
