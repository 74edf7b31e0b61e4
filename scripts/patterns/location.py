"""A location in the sources: a file, a function in it, and a pattern that matches there once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scripts.patterns import lua, python, sql
from scripts.patterns.source import Edit, PatternError, Span

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "penstock"


class Sql(str):
    """A pattern for a string of a Python module that is SQL."""

    __slots__ = ()


class Location(NamedTuple):
    file: str
    """Under src/penstock."""
    at: str
    """A function's qualified name, or an SQL constant. Empty: module level, or all of a script."""
    pattern: str

    def text(self) -> str:
        return (SOURCES / self.file).read_text(encoding="utf-8")

    def span(self, source: str) -> Span:
        find, _ = self._language()
        try:
            return find(source, self.at, self.pattern)
        except PatternError as error:
            raise PatternError(f"{self}: {error}") from error

    def edits(self, source: str, without: str) -> list[Edit]:
        """What changes if only `without` is left of what the pattern matches."""
        _, edits = self._language()
        try:
            return edits(source, self.at, self.pattern, without)
        except PatternError as error:
            raise PatternError(f"{self}: {error}") from error

    def __str__(self) -> str:
        return f"{self.file}, {self.at}" if self.at else self.file

    def _language(self) -> tuple[_Find, _Edits]:
        if self.file.endswith(".lua"):
            return lua.find, lua.edits
        if self.file.endswith(".sql"):
            return sql.find_in_file, sql.edits_in_file
        if isinstance(self.pattern, Sql):
            return sql.find, sql.edits
        return python.find, python.edits


_Find = Callable[[str, str, str], Span]
_Edits = Callable[[str, str, str, str], list[Edit]]
