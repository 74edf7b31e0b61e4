"""Reads the fields of one object of a document and says what is wrong with each."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, TypeVar

from penstock.definition.problems import Problems, path_to

Choice = TypeVar("Choice", bound=str)
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
SECONDS_MAX = 10 * 365 * 86400
VALUE_CHARACTERS_MAX = 40


class Reader:
    def __init__(
        self,
        raw: Any,
        path: str,
        problems: Problems,
        node_id: str | None = None,
        *,
        code: str = "bad_value",
    ) -> None:
        self.path = path
        self.problems = problems
        self.node_id = node_id
        self.code = code
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        if not isinstance(raw, dict):
            name = path.rpartition(".")[2]
            problems.error(code, path, f'"{name}" must be an object, not {kind_of(raw)}', node_id)

    def path_of(self, name: str) -> str:
        return path_to(self.path, (name,))

    def bad(self, name: str, message: str) -> None:
        code = "bad_timeout" if "timeout" in name else self.code
        self.problems.error(code, self.path_of(name), f'"{name}" {message}', self.node_id)

    def unknown(self, field_names: Collection[str]) -> None:
        for name in self.raw:
            if name not in field_names:
                hint = self.problems.did_you_mean(name, sorted(field_names))
                message = f'the field "{name:.100}" isn\'t known and has no effect{hint}'
                self.problems.warn("unknown_field", self.path_of(name), message, self.node_id)

    def pick(self, *names: str) -> tuple[str, Any]:
        """The first of these spellings that is there and isn't null."""
        for i, name in enumerate(names):
            value = self.raw.get(name)
            if value is None:
                continue
            for other in names[i + 1 :]:
                if self.raw.get(other) not in (None, value):
                    self.ignored(other, name)
            return name, value
        return names[0], None

    def ignored(self, name: str, other: str) -> None:
        message = f'"{name}" has no effect, because "{other}" is there too; remove one of them'
        self.problems.warn("ignored_field", self.path_of(name), message, self.node_id)

    def ignored_without(self, name: str, needed: str) -> None:
        message = f'"{name}" has no effect without "{needed}"; remove it'
        self.problems.warn("ignored_field", self.path_of(name), message, self.node_id)

    def value(self, name: str, kinds: tuple[type, ...]) -> Any:
        value = self.raw.get(name)
        if value is None or isinstance(value, kinds):
            return value
        words = {dict: "an object", bool: "true or false", str: "text"}
        allowed = " or ".join(words[kind] for kind in kinds)
        self.bad(name, f"must be {allowed}, not {kind_of(value)}")
        return None

    def text(
        self, *names: str, max_length: int | None = None, limit_controls: bool = True
    ) -> str | None:
        name, value = self.pick(*names)
        if value is None:
            return None
        if not isinstance(value, str):
            self.bad(name, f"must be text, not {kind_of(value)}")
            return None
        if limit_controls and CONTROL_CHARACTER.search(value):
            self.bad(name, "must not contain control characters, such as line breaks")
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
        hint = self.problems.did_you_mean(value, allowed) if isinstance(value, str) else ""
        self.bad(name, f"must be one of {', '.join(allowed)}, not {excerpt_of(value)}{hint}")
        return None

    def number(
        self, name: str, *, minimum: float, maximum: float = SECONDS_MAX, above: bool = False
    ) -> float | None:
        value = self.raw.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.bad(name, f"must be a number, not {excerpt_of(value)}")
        elif above and not value > minimum:
            self.bad(name, f"must be above {minimum:g}, not {excerpt_of(value)}")
        elif not value >= minimum:
            self.bad(name, f"must be at least {minimum:g}, not {excerpt_of(value)}")
        elif value > maximum:
            self.bad(name, f"must be at most {maximum:,.0f}, not {excerpt_of(value)}")
        else:
            return float(value)
        return None

    def integer(self, name: str, *, minimum: int, maximum: int) -> int | None:
        value = self.raw.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return value
        self.bad(
            name, f"must be a whole number from {minimum} to {maximum}, not {excerpt_of(value)}"
        )
        return None

    def seconds(self, *names: str, default: float | None = None) -> float | None:
        name, value = self.pick(*names)
        if value is None:
            return default
        return self.number(name, minimum=0, above=True)


def kind_of(value: Any) -> str:
    names: list[tuple[type | tuple[type, ...], str]] = [
        (type(None), "null"),
        (bool, "true or false"),
        (str, "text"),
        ((int, float), "a number"),
        (list, "a list"),
    ]
    return next((name for kind, name in names if isinstance(value, kind)), "an object")


def excerpt_of(value: Any) -> str:
    """A small value as it stands in the document; of others the kind."""
    if isinstance(value, (dict, list)):
        return kind_of(value)
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > VALUE_CHARACTERS_MAX:
        return text[: VALUE_CHARACTERS_MAX - 1] + "…"
    return text


def has_reference(value: Any) -> bool:
    """Whether the value is a text with `{{ … }}`, of which nothing is known before it runs."""
    return isinstance(value, str) and "{{" in value
