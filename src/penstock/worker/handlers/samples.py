"""A small value that fits a JSON schema, for mocks.

It covers what response schemas use, not all of the standard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

DEPTH_MAX = 32
STEPS_MAX = 10_000
FORMATS = {
    "date-time": "2024-01-01T00:00:00Z",
    "date": "2024-01-01",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "mock@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample(schema: Any) -> Any:
    """The schema must be a valid one.

    Where no simple value is found, the answer doesn't fit: check it.
    """
    return _Sampler(schema).value(schema, 0)


class _Sampler:
    def __init__(self, root: Any) -> None:
        self._root = root
        # Schemas may refer to themselves, several times at each step: depth alone wouldn't bound
        # the work.
        self._steps_left = STEPS_MAX
        self._makers: dict[str | None, Callable[[Mapping[str, Any], int], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": lambda schema, _: _string(schema),
            "integer": lambda schema, _: _number(schema, schema.get("multipleOf", 1)),
            "number": lambda schema, _: _number(schema, schema.get("multipleOf")),
            "boolean": lambda _schema, _: True,
        }

    def value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping) or depth > DEPTH_MAX:
            return None
        schema = self._flattened(schema, depth)
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        for key in ("enum", "examples"):
            if schema.get(key):
                return schema[key][0]
        maker = self._makers.get(_type(schema))
        return maker(schema, depth) if maker else None

    def _flattened(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """`$ref`, `allOf` and the first of `anyOf` or `oneOf` written into one schema; what stands beside them wins."""
        self._steps_left -= 1
        if depth > DEPTH_MAX or self._steps_left < 0:
            return {}
        parts = [self._referenced(schema["$ref"])] if "$ref" in schema else []
        parts += schema.get("allOf", [])
        parts += [options[0] for key in ("anyOf", "oneOf") if (options := schema.get(key))]
        merged: dict[str, Any] = {}
        for part in parts:
            if isinstance(part, Mapping):
                _merge(merged, self._flattened(part, depth + 1))
        _merge(merged, schema)
        return merged

    def _referenced(self, pointer: str) -> Any:
        found = self._root
        for step in pointer.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Required properties, and the optional plain ones: documents refer to these too."""
        properties = schema.get("properties", {})
        plain = [
            name
            for name, inner in properties.items()
            if isinstance(inner, Mapping) and "$ref" not in inner
        ]
        names = dict.fromkeys([*schema.get("required", []), *plain])
        return {
            name: self.value(properties.get(name, {"type": "string"}), depth + 1) for name in names
        }

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        found = [self.value(head, depth + 1) for head in schema.get("prefixItems", [])]
        while len(found) < min(schema.get("minItems", 0), STEPS_MAX):
            found.append(self.value(schema.get("items", {}), depth + 1))
        return found


def _merge(merged: dict[str, Any], part: Mapping[str, Any]) -> None:
    properties = {**merged.get("properties", {}), **part.get("properties", {})}
    required = [*merged.get("required", []), *part.get("required", [])]
    merged.update(part)
    if properties:
        merged["properties"] = properties
    if required:
        merged["required"] = required


def _type(schema: Mapping[str, Any]) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), None)
    if kind is None:
        hints = {
            "properties": "object",
            "required": "object",
            "items": "array",
            "pattern": "string",
        }
        kind = next((implied for key, implied in hints.items() if key in schema), None)
    return kind


def _string(schema: Mapping[str, Any]) -> str:
    text = FORMATS.get(schema.get("format", ""), "mock")
    text = text.ljust(min(schema.get("minLength", 0), STEPS_MAX), "x")
    return text[: schema.get("maxLength", len(text))]


def _number(schema: Mapping[str, Any], step: float | None) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    value = low if low is not None else min(0, high) if high is not None else 0
    if step:
        value = (
            math.ceil(value / step) * step if low is not None else math.floor(value / step) * step
        )
    edge = step or ((high - low) / 2 if low is not None and high is not None else 1)
    if value == schema.get("exclusiveMinimum"):
        value += edge
    if value == schema.get("exclusiveMaximum"):
        value -= edge
    return value
