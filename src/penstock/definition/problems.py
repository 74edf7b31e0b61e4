"""Problems: what is wrong with a document, where, and what to do. Collected, never raised one by one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

MOST_HINTS = 50
LONGEST_KEY_SHOWN = 100


class Problem(msgspec.Struct, frozen=True):
    code: str
    path: str
    message: str
    node_id: str | None = None

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message} [{self.code}]"


class Problems:
    """Collects errors and warnings while a document is read."""

    def __init__(self, *, strict: bool = False) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self._strict = strict
        self._hints_left = MOST_HINTS

    def error(self, code: str, path: str, message: str, node_id: str | None = None) -> None:
        self.errors.append(Problem(code, path, message, node_id))

    def warn(self, code: str, path: str, message: str, node_id: str | None = None) -> None:
        (self.errors if self._strict else self.warnings).append(Problem(code, path, message, node_id))

    def did_you_mean(self, word: str, known: Iterable[str]) -> str:
        """A look at every name is slow, and a document can have 100,000 mistakes: only the first ones get a hint."""
        if not word or not self._hints_left:
            return ""
        self._hints_left -= 1
        name = nearest(word, known)
        return f"; did you mean {name!r}?" if name else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None if nothing is near. Looks at 2,000 names at most."""
    from difflib import get_close_matches  # noqa: PLC0415 -- only documents with mistakes pay for it

    candidates = [name for _, name in zip(range(2000), known, strict=False)]
    found = get_close_matches(word, candidates, n=1, cutoff=0.6)
    return found[0] if found else None


def path_to(start: str, steps: Iterable[str | int]) -> str:
    """`path_to("dag", ("nodes", 3, "id"))` is `dag.nodes[3].id`. Always text that can be stored and sent."""
    return "".join([start, *(_step(step) for step in steps)]).lstrip("." if not start else "")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return "." + step[:LONGEST_KEY_SHOWN].encode("utf-8", "backslashreplace").decode()
