"""Signatures of handlers: what a function wants to be called with.

A handler takes its config as a whole, or the keys of its config as parameters of their names:

    def resize(config, ctx): ...
    def resize(config: Resize): ...                  # a dataclass, msgspec struct, pydantic model
    def resize(url: str, width: int = 100, *, ctx): ...

The context is the parameter that is called `ctx` or `context`, or annotated with `Context`. One
other parameter is the whole config, unless its type is that of a single value, such as `str`.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from penstock.errors import SettingsError
from penstock.worker.config_types import ConfigField
from penstock.worker.context import Context

CONFIG_NAMES = frozenset({"config", "cfg", "conf", "configuration"})
CONTEXT_NAMES = frozenset({"ctx", "context"})
VALUE_TYPES = (
    str,
    int,
    float,
    bool,
    list,
    tuple,
    set,
    frozenset,
    type(None),
    date,
    time,
    timedelta,
    Decimal,
    UUID,
    Enum,
)
"""Types of a single value: a parameter of such a type can't be a whole config."""
EMPTY = inspect.Parameter.empty
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
HOW = "a handler takes (config, ctx), or fewer, or the keys of its config by their names"


class Signature(NamedTuple):
    """How a handler is called."""

    by_position: tuple[str, ...] = ()
    """What each positional argument is: `config` or `context`."""
    by_name: tuple[tuple[str, str], ...] = ()
    """Keyword arguments: the parameter's name, and what it is."""
    keys: tuple[str, ...] | None = None
    """The parameters that are keys of the config; None for a handler that takes it as a whole."""
    is_open: bool = False
    """Other keys are taken too, as `**rest`."""

    @property
    def takes_config(self) -> bool:
        return self.keys is not None or "config" in self._taken

    @property
    def takes_context(self) -> bool:
        return "context" in self._taken

    @property
    def _taken(self) -> tuple[str, ...]:
        return (*self.by_position, *(what for _, what in self.by_name))


USUAL = Signature(("config", "context"))
"""The signature of most handlers: `(config, ctx)`."""


def read_signature(name: str, function: Callable[..., Any]) -> Signature:
    """The signature of a handler's function. Raises `SettingsError` if it can't be called."""
    if not callable(function):
        raise SettingsError(f"the handler {name!r} is {function!r}, which can't be called")
    called = callee(function)
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise SettingsError(
            f"the handler {name!r} is a generator; return a list instead of yielding its items"
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise SettingsError(
            f"the handler {name!r} has no signature that Python knows; wrap it in a function: {HOW}"
        ) from None
    signature = _Reading(name, function, parameters).signature()
    return USUAL if signature == USUAL else signature


def callee(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, or the `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters, as far as they are known at run time."""
    try:
        return typing.get_type_hints(callee(function), include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}  # a type that only exists for the type checker, or further down in the module


def key_fields(function: Callable[..., Any], keys: tuple[str, ...]) -> dict[str, ConfigField]:
    """The keys of a config that a function takes as parameters."""
    hints = hints_of(function)
    parameters = inspect.signature(function).parameters
    return {
        key: ConfigField(key, hints.get(key, Any), required=parameters[key].default is EMPTY)
        for key in keys
    }


class _Reading:
    """Reads one signature."""

    def __init__(
        self, name: str, function: Callable[..., Any], parameters: list[inspect.Parameter]
    ) -> None:
        self._name = name
        self._function = function
        self._hints = hints_of(function)
        self._has_varargs = any(item.kind is item.VAR_POSITIONAL for item in parameters)
        self._is_open = any(item.kind is item.VAR_KEYWORD for item in parameters)
        named = [
            item for item in parameters if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        ]
        self._context = next(filter(self._is_context, named), None)
        self._others = [item for item in named if item is not self._context]
        self._named = named

    def signature(self) -> Signature:
        if self._has_varargs:
            return USUAL
        if self._takes_both_unnamed():
            return USUAL
        config = self._config()
        if config is not None:
            return self._whole(config)
        if self._others or self._is_open:
            return self._keys()
        return self._arguments({})

    def _is_context(self, parameter: inspect.Parameter) -> bool:
        if parameter.name.strip("_").lower() in CONTEXT_NAMES:
            return True
        annotation = self._hints.get(parameter.name, parameter.annotation)
        if isinstance(annotation, str):
            return annotation.rpartition(".")[2] == Context.__name__
        return annotation is Context

    def _takes_both_unnamed(self) -> bool:
        """`(_, _ctx)` and its like: two parameters that aren't used, or not named as usual."""
        if self._context is not None or len(self._others) != 2:  # noqa: PLR2004 -- config, context
            return False
        return all(
            parameter.name.startswith("_")
            and parameter.default is EMPTY
            and parameter.kind in BY_POSITION
            for parameter in self._others
        )

    def _config(self) -> inspect.Parameter | None:
        """The parameter that takes the whole config."""
        for parameter in self._others:
            if parameter.name.strip("_").lower() in CONFIG_NAMES:
                return parameter
        if len(self._others) != 1 or self._is_open:
            return None
        [only] = self._others
        is_key = only.kind is only.KEYWORD_ONLY or only.default is not EMPTY
        return None if is_key or self._is_value(only) else only

    def _is_value(self, parameter: inspect.Parameter) -> bool:
        hint = self._hints.get(parameter.name, parameter.annotation)
        return hint is not EMPTY and is_value_type(hint)

    def _whole(self, config: inspect.Parameter) -> Signature:
        extra = [
            parameter.name
            for parameter in self._others
            if parameter is not config and parameter.default is EMPTY
        ]
        if extra:
            listed = ", ".join(map(repr, extra))
            raise SettingsError(
                f"the handler {self._name!r} takes {config.name!r} and {listed},"
                f" which nobody gives it; {HOW}"
            )
        return self._arguments({config.name: "config"})

    def _keys(self) -> Signature:
        for parameter in self._others:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise SettingsError(
                    f"the handler {self._name!r} takes {parameter.name!r} by its position only;"
                    f" {HOW}"
                )
        keys = tuple(parameter.name for parameter in self._others)
        by_name = ((self._context.name, "context"),) if self._context is not None else ()
        if self._context is not None and self._context.kind is inspect.Parameter.POSITIONAL_ONLY:
            return Signature(("context",), keys=keys, is_open=self._is_open)
        return Signature(by_name=by_name, keys=keys, is_open=self._is_open)

    def _arguments(self, meanings: Mapping[str, str]) -> Signature:
        """The signature of a function that takes config and context, in any order."""
        what = dict(meanings)
        if self._context is not None:
            what[self._context.name] = "context"
        by_position: list[str] = []
        by_name: list[tuple[str, str]] = []
        for parameter in self._named:
            if parameter.name not in what:
                # it has a default; what comes after it needs its name
                continue
            is_next = parameter.kind in BY_POSITION and len(by_position) == self._named.index(
                parameter
            )
            if is_next:
                by_position.append(what[parameter.name])
            else:
                by_name.append((parameter.name, what[parameter.name]))
        return Signature(tuple(by_position), tuple(by_name))


def is_value_type(hint: Any) -> bool:
    """Whether a type is that of a single value, and not of a whole config."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return is_value_type(typing.get_args(hint)[0])
    if origin is typing.Literal:
        return True
    if origin in (typing.Union, types.UnionType):
        return all(map(is_value_type, typing.get_args(hint)))
    plain = origin or hint
    if plain is None:
        return True
    return isinstance(plain, type) and issubclass(plain, VALUE_TYPES)
