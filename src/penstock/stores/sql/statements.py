"""Statements of SQL from a file beside their module, each under its name.

A statement begins with a line `-- name --`. Comments below it say what it does, its arguments and
its result; they aren't sent to the database.
"""

from __future__ import annotations

import re
from pathlib import Path

_HEADING = re.compile(r"^-- (\w+) --$", re.MULTILINE)


class Statements:
    """The statements of a file, as attributes."""

    def __init__(self, texts: dict[str, str]) -> None:
        vars(self).update(texts)

    def __getattr__(self, name: str) -> str:
        """Called only for a name that no statement has."""
        raise AttributeError(f"there is no statement {name!r}")


def statements_beside(module: str) -> Statements:
    """The statements of the `.sql` file beside a module, which gives its `__file__`."""
    return parse(Path(module).with_suffix(".sql").read_text("utf-8"))


def parse(source: str) -> Statements:
    _, *parts = _HEADING.split(source)
    texts: dict[str, str] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        lines = [line for line in body.strip().splitlines() if not line.startswith("--")]
        texts[name] = "\n".join(lines).strip()
    return Statements(texts)
