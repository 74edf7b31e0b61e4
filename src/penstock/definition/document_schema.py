"""The JSON Schema of a document, made of the tables that the parser reads by.

It is for editors, which complete and check with it. It takes every document that the parser takes,
except that it names fields and config keys that the parser only warns of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.definition.document_fields import (
    CATCH_FIELDS,
    DAG_FIELDS,
    DEFAULTS_FIELDS,
    NODE_FIELDS,
    REPEAT_FIELDS,
    RETRY_FIELDS,
    WORKFLOW_FIELDS,
    DocumentField,
    Schema,
)
from penstock.definition.handler_configs import HANDLER_CONFIGS, ConfigKey, HandlerConfig, Kind
from penstock.definition.model import HANDLER_ALIASES

DIALECT = "https://json-schema.org/draft/2020-12/schema"
REFERENCE: Schema = {"type": "string", "pattern": "\\{\\{"}
"""What any literal may be instead: of a reference nothing is known before the node starts."""
GIVEN_ELSEWHERE = frozenset({"model"})
"""Keys that settings can give."""
JSON_TYPES: dict[Kind, str] = {
    "text": "string",
    "number": "number",
    "object": "object",
    "list": "array",
}


def document_schema() -> Schema:
    """The schema; the same each time."""
    return {
        "$schema": DIALECT,
        "title": "Penstock workflow",
        "description": "A workflow of nodes, each of which runs a handler.",
        **_object(WORKFLOW_FIELDS),
        "anyOf": [{"required": ["nodes"]}, {"required": ["dag"]}],
        "$defs": {
            "node": {
                **_object(NODE_FIELDS),
                "required": ["id"],
                "allOf": [HAS_HANDLER, *_configs()],
            },
            "keyed_node": {**_object(NODE_FIELDS), "allOf": [HAS_HANDLER, *_configs()]},
            "dag": {**_object(DAG_FIELDS), "required": ["nodes"]},
            "defaults": _object(DEFAULTS_FIELDS),
            "retry": _object(RETRY_FIELDS),
            "catch": {**_object(CATCH_FIELDS), "required": ["node"]},
            "repeat": {**_object(REPEAT_FIELDS), "required": ["until", "max_rounds"]},
        },
    }


HAS_HANDLER: Schema = {
    "anyOf": [
        {"required": ["handler"]},
        {"required": ["type"]},
        {"required": ["switch"]},
        {"required": ["nodes"]},
    ]
}


def _object(fields: Mapping[str, DocumentField]) -> Schema:
    return {
        "type": "object",
        "properties": {name: _property(field) for name, field in fields.items()},
    }


def _property(field: DocumentField) -> Schema:
    if not field.schema:
        return {"description": field.description}
    return {"description": field.description, "anyOf": [field.schema, {"type": "null"}]}


def _configs() -> list[Schema]:
    """For each built-in handler: what its config looks like."""
    names: dict[str, list[str]] = {}
    for name in HANDLER_CONFIGS:
        if not name.startswith("penstock."):
            names.setdefault(name, []).append(name)
    for alias, name in HANDLER_ALIASES.items():
        names[name].append(alias)
    return [
        {
            "if": {
                "anyOf": [
                    {"required": [field], "properties": {field: {"enum": spellings}}}
                    for field in ("handler", "type")
                ]
            },
            "then": _with_config(HANDLER_CONFIGS[name]),
        }
        for name, spellings in names.items()
        if not HANDLER_CONFIGS[name].is_open
    ]


def _with_config(shape: HandlerConfig) -> Schema:
    config: Schema = {
        "type": ["object", "null"],
        "properties": {key.name: _config_key(key) for key in shape.keys},
        "patternProperties": {REFERENCE["pattern"]: True},
        "additionalProperties": False,
    }
    required = [key.name for key in shape.keys if key.required and key.name not in GIVEN_ELSEWHERE]
    groups = [{"anyOf": [{"required": [name]} for name in group]} for group in shape.one_of]
    if required:
        config["required"] = required
    if groups:
        config["allOf"] = groups
    if not required and not groups:
        return {"properties": {"config": config}}
    return {"properties": {"config": {**config, "type": "object"}}, "required": ["config"]}


def _config_key(key: ConfigKey) -> Schema:
    if "any" in key.kinds:
        return {"description": key.description}
    values: list[Schema] = [_kind(kind, key) for kind in key.kinds]
    return {"description": key.description, "anyOf": [*values, REFERENCE, {"type": "null"}]}


def _kind(kind: Kind, key: ConfigKey) -> Schema:
    schema: dict[str, Any] = {"type": JSON_TYPES[kind]}
    if key.choices:
        lower = [choice.lower() for choice in key.choices] if key.any_case else []
        schema["enum"] = [*key.choices, *(name for name in lower if name not in key.choices)]
    if kind == "text" and key.pattern:
        schema["pattern"] = key.pattern
        schema["description"] = key.pattern_name
    if kind == "number" and key.minimum is not None:
        schema["minimum"] = key.minimum
    if kind == "number" and key.above is not None:
        schema["exclusiveMinimum"] = key.above
    if kind == "number" and key.maximum is not None:
        schema["maximum"] = key.maximum
    if kind == "number" and key.is_whole:
        schema["type"] = "integer"
    if kind == "object" and key.refused_names:
        schema["propertyNames"] = {"not": {"enum": list(key.refused_names)}}
    return schema
