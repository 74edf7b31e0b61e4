"""Problems: what is wrong with a document, where, and what to do.

Collected, never raised one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.spelling import NAME_LENGTH_MAX, nearest_name

HINTS_MAX = 10
PROBLEMS_MAX = 100
"""Errors and warnings that are reported of one document, each; of the rest only the number."""
MESSAGE_CHARACTERS_MAX = 600
PATH_CHARACTERS_MAX = 1000
KEY_CHARACTERS_MAX = 100


class Problem(msgspec.Struct, frozen=True):
    code: str
    path: str
    message: str
    node_id: str | None = None
    line: Annotated[
        int | UnsetType,
        Meta(description="Where in the text of the document, from 1, if that is known."),
    ] = UNSET
    column: int | UnsetType = UNSET

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message} [{self.code}]"

    @property
    def position(self) -> str:
        """`:12:7`, as it follows a file's name."""
        if self.line is UNSET:
            return ""
        return f":{self.line}" if self.column is UNSET else f":{self.line}:{self.column}"

    def in_file(self, name: str) -> str:
        """`flow.json:12:7 nodes[2].config.ulr: …`, or `flow.json: …` if the place isn't known."""
        separator = "" if self.position else ":"
        return f"{name}{self.position}{separator} {self}"


class Problems:
    """Collects errors and warnings while a document is read.

    A document can have as many mistakes as it has words: how many are kept, and how long they are,
    is bounded.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []
        self._more_errors = 0
        self._more_warnings = 0
        self._strict = strict
        self._hints_left = HINTS_MAX
        self.twins: dict[str, str] = {}
        """By id of a node that was made from another, the path that is its own.

        What is wrong elsewhere is reported of the other.
        """

    @property
    def errors(self) -> list[Problem]:
        return _with_the_rest(self._errors, self._more_errors)

    @property
    def warnings(self) -> list[Problem]:
        return _with_the_rest(self._warnings, self._more_warnings)

    def error(self, code: str, path: str, message: str, node_id: str | None = None) -> None:
        if self._is_reported_elsewhere(path, node_id):
            return
        if len(self._errors) < PROBLEMS_MAX:
            self._errors.append(_cut(code, path, message, node_id))
        else:
            self._more_errors += 1

    def warn(self, code: str, path: str, message: str, node_id: str | None = None) -> None:
        if self._is_reported_elsewhere(path, node_id):
            return
        if self._strict:
            self.error(code, path, message, node_id)
        elif len(self._warnings) < PROBLEMS_MAX:
            self._warnings.append(_cut(code, path, message, node_id))
        else:
            self._more_warnings += 1

    def _is_reported_elsewhere(self, path: str, node_id: str | None) -> bool:
        own_path = self.twins.get(node_id or "")
        return own_path is not None and not path.startswith(own_path)

    def did_you_mean(self, word: str, names: Iterable[str]) -> str:
        """A hint at the name that was probably meant, or nothing.

        A look at many names is slow, and a document can have 100,000 mistakes: only the first ones
        get a hint.
        """
        if not self._hints_left or not 0 < len(word) <= NAME_LENGTH_MAX:
            return ""
        self._hints_left -= 1
        name = nearest_name(word, names)
        return f"; did you mean {name!r}?" if name else ""


def _with_the_rest(problems: list[Problem], unlisted: int) -> list[Problem]:
    if not unlisted:
        return problems
    message = f"and {unlisted:,} more, which aren't listed; correct these first"
    return [*problems, Problem("more_problems", "", message)]


def _cut(code: str, path: str, message: str, node_id: str | None) -> Problem:
    if len(message) > MESSAGE_CHARACTERS_MAX:
        message = message[:MESSAGE_CHARACTERS_MAX] + "…"
    if len(path) > PATH_CHARACTERS_MAX:
        path = path[:PATH_CHARACTERS_MAX] + "…"
    return Problem(code, path, message, node_id)


def quoted(text: str) -> str:
    """A name as it stands in a message: in quotes, and cut if it is long."""
    if len(text) > KEY_CHARACTERS_MAX:
        text = text[: KEY_CHARACTERS_MAX - 1] + "…"
    return repr(text)


def path_to(start: str, steps: Iterable[str | int]) -> str:
    """`path_to("dag", ("nodes", 3, "id"))` is `dag.nodes[3].id`.

    Always text that can be stored and sent.
    """
    path = start + "".join([_step(step) for step in steps])
    return path if start else path.removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return "." + step[:KEY_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode()
