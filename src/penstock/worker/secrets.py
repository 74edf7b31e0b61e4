"""Secrets: looked up by name in the worker, when a task starts. `redaction` takes them out of what it reports.

They are never stored: a document has only `{{ secrets.NAME }}`. A value is read from the environment or from
`secrets_file` at each use, so that a rotated secret needs no restart.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config import Settings
from penstock.errors import Terminal

PREFIX = "PENSTOCK_SECRET_"
# A name becomes a file's name below: no separators, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


class Secrets:
    """Where a worker finds secrets.

    `secrets_file` is a directory with one file per secret (as Docker and Kubernetes mount them), a `.toml` or `.json`
    file with one table of texts, or a file of `NAME=value` lines.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str] | None = None) -> None:
        self._path = Path(settings.secrets_file) if settings.secrets_file else None
        self._environ = os.environ if environ is None else environ

    def get(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise Terminal(
                f"'{name[:80]}' can't be the name of a secret: letters, digits, '_', '-' and '.' are allowed",
                category="secret",
            )
        value = self._environ.get(PREFIX + name) or self._environ.get(PREFIX + name.upper()) or None
        if value is None and self._path is not None:
            value = _from_path(self._path, name)
        if value is None:
            raise Terminal(f"there is no secret '{name}': {self._places(name)}", category="secret")
        return value

    def _places(self, name: str) -> str:
        variable = f"set {PREFIX}{name} in the worker's environment"
        if self._path is None:
            return f"{variable}, or point PENSTOCK_SECRETS_FILE to a file that has it"
        return f"{variable}, or put it into {self._path} (PENSTOCK_SECRETS_FILE)"


def _from_path(path: Path, name: str) -> str | None:
    try:
        if path.is_dir():
            file = path / name
            return _without_newline(file.read_text(encoding="utf-8")) if file.is_file() else None
        value = _table(path).get(name)
    except (OSError, ValueError) as error:
        # The text of a parser's error may quote the file, hence only its type.
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise Terminal(f"the secrets in {path} can't be read: {reason}", category="secret") from None
    if value is not None and not isinstance(value, str):
        raise Terminal(f"the secret '{name}' in {path} isn't text: put it in quotes", category="secret")
    return value


def _without_newline(text: str) -> str:
    """Editors and `echo` add one newline; a key in PEM form keeps all others."""
    return text.removesuffix("\n").removesuffix("\r")


def _table(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        import tomllib  # noqa: PLC0415 -- one of three formats

        return tomllib.loads(text)
    if path.suffix == ".json":
        table = json.loads(text)
        return table if isinstance(table, dict) else {}
    return dict(_line(line) for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))


def _line(line: str) -> tuple[str, str]:
    name, _, value = line.strip().removeprefix("export ").partition("=")
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return name.strip(), value[1:-1] if quoted else value
