"""Sample values that fit a JSON schema, for mocks.

They cover what response schemas use, not all of the standard.
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
IMPLIED_TYPES = {
    "properties": "object",
    "required": "object",
    "items": "array",
    "pattern": "string",
}


def sample(schema: Any) -> Any:
    """A small value for a valid JSON schema.

    Where no simple value fits, the answer doesn't fit either: the caller has to check it.
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

        maker = self._makers.get(_type_of(schema))
        return maker(schema, depth) if maker else None

    def _flattened(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """The schema merged with its `$ref`, its `allOf` and the first of its `anyOf` or `oneOf`.

        What the schema itself says goes before what these say.
        """
        self._steps_left -= 1
        if depth > DEPTH_MAX or self._steps_left < 0:
            return {}

        parts = []
        if "$ref" in schema:
            parts.append(self._referenced(schema["$ref"]))
        parts += schema.get("allOf", [])
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                parts.append(schema[key][0])

        merged: dict[str, Any] = {}
        for part in parts:
            if isinstance(part, Mapping):
                _merge(merged, self._flattened(part, depth + 1))
        _merge(merged, schema)
        return merged

    def _referenced(self, pointer: str) -> Any:
        target = self._root
        for step in pointer.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, Mapping) else None
        return target

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Required properties, and the optional plain ones: documents refer to these too."""
        properties = schema.get("properties", {})
        names = list(schema.get("required", []))
        for name, inner in properties.items():
            if isinstance(inner, Mapping) and "$ref" not in inner:
                names.append(name)

        values = {}
        for name in dict.fromkeys(names):
            inner = properties.get(name, {"type": "string"})
            values[name] = self.value(inner, depth + 1)
        return values

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        items = [self.value(head, depth + 1) for head in schema.get("prefixItems", [])]
        length = min(schema.get("minItems", 0), STEPS_MAX)
        while len(items) < length:
            items.append(self.value(schema.get("items", {}), depth + 1))
        return items


def _merge(merged: dict[str, Any], part: Mapping[str, Any]) -> None:
    properties = {**merged.get("properties", {}), **part.get("properties", {})}
    required = [*merged.get("required", []), *part.get("required", [])]

    merged.update(part)
    if properties:
        merged["properties"] = properties
    if required:
        merged["required"] = required


def _type_of(schema: Mapping[str, Any]) -> str | None:
    """The JSON type that a schema names, or that one of its other keys implies."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), None)
    if kind is not None:
        return kind  # type: ignore[no-any-return]
    for key, implied in IMPLIED_TYPES.items():
        if key in schema:
            return implied
    return None


def _string(schema: Mapping[str, Any]) -> str:
    text = FORMATS.get(schema.get("format", ""), "mock")
    text = text.ljust(min(schema.get("minLength", 0), STEPS_MAX), "x")
    return text[: schema.get("maxLength", len(text))]


def _number(schema: Mapping[str, Any], step: float | None) -> float:
    value: float
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is not None:
        value = low
    elif high is not None:
        value = min(0, high)
    else:
        value = 0

    if step and low is not None:
        value = math.ceil(value / step) * step
    elif step:
        value = math.floor(value / step) * step

    if step:
        edge = step
    elif low is not None and high is not None:
        edge = (high - low) / 2
    else:
        edge = 1
    if value == schema.get("exclusiveMinimum"):
        value += edge
    if value == schema.get("exclusiveMaximum"):
        value -= edge
    return value
