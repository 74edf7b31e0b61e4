"""Typed configs of handlers: which type a handler wants, and what of a literal config doesn't fit.

A type is a dataclass, a msgspec struct or a pydantic model. Values with references aren't known
before the node starts, so they fit any type here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_type_hints

import msgspec

from penstock.definition.handler_configs import ConfigFault


class _Field(NamedTuple):
    name: str
    type: Any
    required: bool


def is_config_type(hint: Any) -> bool:
    return isinstance(hint, type) and (
        dataclasses.is_dataclass(hint)
        or issubclass(hint, msgspec.Struct)
        or hasattr(hint, "model_validate")
    )


def config_type_faults(wanted: Any, config: Mapping[str, Any]) -> Iterator[ConfigFault]:
    """What of a config can't be read into the type."""
    if hasattr(wanted, "model_validate"):
        yield from _model_faults(wanted, config)
        return
    fields = _fields(wanted)
    for name in config:
        if name not in fields:
            message = f"{wanted.__name__} has no field {name[:80]!r}"
            yield ConfigFault("unknown_config", (name,), message, name, tuple(fields))
    for field in fields.values():
        if field.required and field.name not in config:
            message = f'{wanted.__name__} needs "{field.name}" in the config'
            yield ConfigFault("missing_config", (), message)
        elif field.name in config and not _has_reference(config[field.name]):
            try:
                msgspec.convert(config[field.name], field.type)
            except (msgspec.ValidationError, TypeError) as error:
                message = f"doesn't fit {wanted.__name__}: {str(error)[:300]}"
                yield ConfigFault("bad_config", (field.name,), f'"{field.name}" {message}')


def _fields(wanted: Any) -> dict[str, _Field]:
    if issubclass(wanted, msgspec.Struct):
        return {
            field.encode_name: _Field(field.encode_name, field.type, field.required)
            for field in msgspec.structs.fields(wanted)
        }
    hints = get_type_hints(wanted, include_extras=True)
    missing = dataclasses.MISSING
    return {
        field.name: _Field(
            field.name,
            hints[field.name],
            field.default is missing and field.default_factory is missing,
        )
        for field in dataclasses.fields(wanted)
        if field.init
    }


def _model_faults(wanted: Any, config: Mapping[str, Any]) -> Iterator[ConfigFault]:
    """As pydantic says it, except about values with references."""
    names = _model_names(wanted)
    ignores_others = getattr(wanted, "model_config", {}).get("extra") in (None, "ignore")
    for name in config:
        if names and ignores_others and name not in names:
            message = f"{wanted.__name__} has no field {name[:80]!r}"
            yield ConfigFault("unknown_config", (name,), message, name, tuple(names))
    try:
        wanted.model_validate(dict(config))
    except ValueError as error:
        errors: list[Any] = getattr(error, "errors", list)()
    else:
        return
    is_known = not _has_reference(dict(config))
    for problem in errors:
        path = tuple(problem["loc"])
        is_about_all = not path
        if (is_about_all and not is_known) or (path and _has_reference(config.get(path[0]))):
            continue
        code = "missing_config" if problem["type"] == "missing" else "bad_config"
        where = f'"{path[0]}" ' if path else ""
        message = f"{where}doesn't fit {wanted.__name__}: {problem['msg']}"
        yield ConfigFault(code, path, message)


def _model_names(wanted: Any) -> set[str]:
    names: set[str] = set()
    for name, field in getattr(wanted, "model_fields", {}).items():
        aliases = (name, getattr(field, "alias", None), getattr(field, "validation_alias", None))
        names.update(alias for alias in aliases if isinstance(alias, str))
    return names


def _has_reference(value: Any) -> bool:
    if isinstance(value, str):
        return "{{" in value
    if isinstance(value, dict):
        return any(_has_reference(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_reference(item) for item in value)
    return False
