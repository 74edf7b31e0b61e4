"""Reads the fields of one object of a document and says what is wrong with each."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, TypeVar

from penstock.definition.problems import Problems, did_you_mean

Choice = TypeVar("Choice", bound=str)
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
LONGEST_SECONDS = 10 * 365 * 86400


class Reader:
    def __init__(self, raw: Any, path: str, problems: Problems, node_id: str | None = None) -> None:
        self.path, self.problems, self.node_id = path, problems, node_id
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        if not isinstance(raw, dict):
            problems.error("bad_value", path, f"{path!r} must be an object", node_id)

    def place(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def bad(self, name: str, message: str) -> None:
        code = "bad_retry" if "retry" in self.place(name) else "bad_timeout" if "timeout" in name else "bad_value"
        self.problems.error(code, self.place(name), f'"{name}" {message}', self.node_id)

    def unknown(self, known: Collection[str]) -> None:
        for name in self.raw:
            if name not in known:
                hint = did_you_mean(name, known)
                message = f'the field "{name}" isn\'t known and has no effect{hint}'
                self.problems.warn("unknown_field", self.place(name), message, self.node_id)

    def pick(self, *names: str) -> tuple[str, Any]:
        """The first of these spellings that is there and isn't null."""
        for name in names:
            if self.raw.get(name) is not None:
                return name, self.raw[name]
        return names[0], None

    def value(self, name: str, kinds: tuple[type, ...]) -> Any:
        value = self.raw.get(name)
        if value is None or isinstance(value, kinds):
            return value
        words = {dict: "an object", bool: "true or false", str: "text"}
        self.bad(name, "must be " + " or ".join(words[kind] for kind in kinds))
        return None

    def text(self, *names: str, max_length: int | None = None, limit_controls: bool = True) -> str | None:
        name, value = self.pick(*names)
        if value is None:
            return None
        if not isinstance(value, str):
            self.bad(name, "must be text")
            return None
        if limit_controls and CONTROL_CHARACTER.search(value):
            self.bad(name, "must not contain control characters")
        elif max_length and len(value) > max_length:
            self.bad(name, f"has {len(value)} characters; the limit is {max_length}")
        return value

    def choice(self, name: str, allowed: tuple[Choice, ...]) -> Choice | None:
        value = self.raw.get(name)
        if value is None:
            return None
        for option in allowed:
            if value == option:
                return option
        hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
        self.bad(name, f"must be one of {', '.join(allowed)}{hint}")
        return None

    def number(self, name: str, *, least: float, above: bool = False) -> float | None:
        value = self.raw.get(name)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and value <= LONGEST_SECONDS
        if good and (value > least if above else value >= least):
            return float(value)
        self.bad(name, f"must be a number {'above' if above else 'of at least'} {least:g}")
        return None

    def integer(self, name: str, *, least: int, most: int) -> int | None:
        value = self.raw.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.bad(name, f"must be a whole number from {least} to {most}")
        return None

    def seconds(self, *names: str, default: float | None = None) -> float | None:
        name, value = self.pick(*names)
        if value is None:
            return default
        return self.number(name, least=0, above=True)
