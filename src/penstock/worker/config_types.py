"""Typed configs of handlers: which type a handler wants, and what of a literal config doesn't fit.

A type is a dataclass, a msgspec struct or a pydantic model; or a handler takes the keys of its
config as parameters, each of its own type. Values with references aren't known before the node
starts, so they fit any type here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_type_hints

import msgspec

from penstock.definition.handler_configs import ConfigFault
from penstock.spelling import nearest_name


class ConfigField(NamedTuple):
    name: str
    type: Any
    required: bool


class ConfigFields(NamedTuple):
    """The keys of a config and their types."""

    owner: str
    """The type or the function that has them, for messages."""
    fields: Mapping[str, ConfigField]
    kind: str = "field"
    is_open: bool = False
    """Other keys fit too."""

    def faults(self, config: Mapping[str, Any]) -> Iterator[ConfigFault]:
        """What of a config doesn't fit."""
        for name in () if self.is_open else config:
            if name not in self.fields:
                message = self._no_such(name)
                yield ConfigFault("unknown_config", (name,), message, name, tuple(self.fields))
        for field in self.fields.values():
            if field.required and field.name not in config:
                yield ConfigFault("missing_config", (), self._missing(field.name))
            elif field.name in config and not _has_reference(config[field.name]):
                try:
                    convert(config[field.name], field.type)
                except (ValueError, TypeError) as error:
                    message = f"doesn't fit {self.owner}: {str(error)[:300]}"
                    yield ConfigFault("bad_config", (field.name,), f'"{field.name}" {message}')

    def converted(self, config: Mapping[str, Any], *, lenient: bool = False) -> dict[str, Any]:
        """A config with each value in its type. Raises `ValueError`.

        With `lenient`, keys that aren't known are left out.
        """
        values: dict[str, Any] = {}
        for name, value in config.items():
            field = self.fields.get(name)
            if field is not None:
                try:
                    values[name] = convert(value, field.type)
                except (ValueError, TypeError) as error:
                    message = f'"{name}" of the config doesn\'t fit {self.owner}: {error}'
                    raise ValueError(message) from None
            elif self.is_open:
                values[name] = value
            elif not lenient:
                meant = nearest_name(name, self.fields)
                hint = f"; did you mean {meant!r}?" if meant else ""
                raise ValueError(self._no_such(name) + hint)
        for field in self.fields.values():
            if field.required and field.name not in values:
                raise ValueError(self._missing(field.name))
        return values

    def _no_such(self, name: str) -> str:
        return f"{self.owner} has no {self.kind} {name[:80]!r}"

    def _missing(self, name: str) -> str:
        return f'{self.owner} needs "{name}" in the config'


def is_config_type(hint: Any) -> bool:
    return isinstance(hint, type) and (
        dataclasses.is_dataclass(hint)
        or issubclass(hint, msgspec.Struct)
        or hasattr(hint, "model_validate")
    )


def convert(value: Any, wanted: Any) -> Any:
    """A JSON value in this type. Raises `ValueError`, as msgspec's and pydantic's errors are."""
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate(value)
    return msgspec.convert(value, wanted, dec_hook=_decode_model)


def _decode_model(wanted: Any, value: Any) -> Any:
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate(value)
    raise NotImplementedError(f"a value of JSON can't be a {getattr(wanted, '__name__', wanted)}")


def config_type_faults(wanted: Any, config: Mapping[str, Any]) -> Iterator[ConfigFault]:
    """What of a config can't be read into the type."""
    if hasattr(wanted, "model_validate"):
        yield from _model_faults(wanted, config)
        return
    yield from ConfigFields(wanted.__name__, _fields(wanted)).faults(config)


def _fields(wanted: Any) -> dict[str, ConfigField]:
    if issubclass(wanted, msgspec.Struct):
        return {
            field.encode_name: ConfigField(field.encode_name, field.type, field.required)
            for field in msgspec.structs.fields(wanted)
        }
    hints = get_type_hints(wanted, include_extras=True)
    missing = dataclasses.MISSING
    return {
        field.name: ConfigField(
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
