"""The configs of the built-in handlers: which keys they have, and which values these take.

`HANDLER_CONFIGS` is the one place that says so. Submission checks literal values by it, workers
know their keys from it, the JSON Schema of the document and docs/handlers.md list what it has.
Values with references are judged by the worker, which knows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from penstock.definition.fields import excerpt_of, kind_of

Kind: TypeAlias = Literal["text", "number", "object", "list", "any"]
KINDS: dict[Kind, tuple[type, ...]] = {
    "text": (str,),
    "number": (int, float),
    "object": (dict,),
    "list": (list,),
    "any": (object,),
}
KIND_NAMES: dict[Kind, str] = {
    "text": "text",
    "number": "a number",
    "object": "an object",
    "list": "a list",
    "any": "anything",
}
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
OPERATORS = ("==", "!=", ">", ">=", "<", "<=", "in", "contains")
TRANSFORM_TYPES = ("uppercase", "lowercase", "json_parse", "json_stringify", "none", "identity")
AGGREGATE_TYPES = ("list", "count", "sum", "average", "min", "max", "concat", "merge")
OPERATIONS = ("add", "subtract", "multiply", "divide", "min", "max")


class ConfigKey(msgspec.Struct, frozen=True):
    name: str
    description: str
    kinds: tuple[Kind, ...] = ("any",)
    required: bool = False
    choices: tuple[str, ...] = ()
    any_case: bool = False
    """Choices may be written in small letters too."""
    minimum: float | None = None
    above: float | None = None

    def fault(self, value: Any) -> str | None:
        """What is wrong with a literal value."""
        is_allowed = any(isinstance(value, KINDS[kind]) for kind in self.kinds)
        if not is_allowed or (isinstance(value, bool) and "any" not in self.kinds):
            allowed = " or ".join(KIND_NAMES[kind] for kind in self.kinds)
            return f"must be {allowed}, not {kind_of(value)}"
        if self.choices and (value.upper() if self.any_case else value) not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {excerpt_of(value)}"
        if isinstance(value, (int, float)) and "number" in self.kinds:
            return self._number_fault(value)
        return None

    def _number_fault(self, value: float) -> str | None:
        if not math.isfinite(value):
            return "must be finite"
        if self.above is not None and not value > self.above:
            return f"must be above {self.above:g}, not {excerpt_of(value)}"
        if self.minimum is not None and not value >= self.minimum:
            return f"must be at least {self.minimum:g}, not {excerpt_of(value)}"
        return None


class HandlerConfig(msgspec.Struct, frozen=True):
    keys: tuple[ConfigKey, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    """Of each group exactly one key must be there."""
    at_most_one_of: tuple[tuple[str, ...], ...] = ()
    is_open: bool = False
    """Any other keys are allowed."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)


INPUT_KEYS = tuple(
    ConfigKey(name, "The values to work on; without any, the outputs of the node's dependencies.")
    for name in ("inputs", "input", "values", "data")
)
EXPRESSION_KEYS = (
    ConfigKey("expression", "A CEL expression over outputs, input and variables.", ("text",)),
    ConfigKey("variables", "Names and values for the expression.", ("object",)),
)
HANDLER_CONFIGS: dict[str, HandlerConfig] = {
    "input": HandlerConfig(is_open=True),
    "output": HandlerConfig(is_open=True),
    "noop": HandlerConfig(is_open=True),
    "echo": HandlerConfig(is_open=True),
    "decision": HandlerConfig(
        (
            ConfigKey("value_a", "The left value.", required=True),
            ConfigKey("operator", "How to compare.", ("text",), required=True, choices=OPERATORS),
            ConfigKey("value_b", "The right value.", required=True),
        )
    ),
    "call_external_service": HandlerConfig(
        (
            ConfigKey("url", "The address, http or https.", ("text",), required=True),
            ConfigKey(
                "method",
                "The HTTP method. Default: POST with a body, otherwise GET.",
                ("text",),
                choices=METHODS,
                any_case=True,
            ),
            ConfigKey("headers", "Headers; those with null are left out.", ("object",)),
            ConfigKey(
                "params",
                "The query string; null is left out, a list repeats the name.",
                ("object",),
            ),
            ConfigKey("body", "Text, or an object that is sent as JSON or as a form."),
            ConfigKey("json", "Any JSON value, sent as the body."),
            ConfigKey("timeout_seconds", "How long the call may take.", ("number",), above=0),
            ConfigKey(
                "expect_status", "A status, or a list of them, that is success.", ("number", "list")
            ),
        ),
        at_most_one_of=(("body", "json"),),
    ),
    "llm_service": HandlerConfig(
        (
            ConfigKey("prompt", "What the user says."),
            ConfigKey("messages", "The messages, instead of a prompt.", ("list",)),
            ConfigKey("model", "The name of the model.", ("text",), required=True),
            ConfigKey("system", "The system message.", ("text",)),
            ConfigKey("temperature", "Passed to the model.", ("number",)),
            ConfigKey("max_tokens", "Passed to the model.", ("number",)),
            ConfigKey("response_schema", "A JSON Schema that the reply must fit."),
            ConfigKey("provider", "The name of a provider in the settings.", ("text",)),
        ),
        one_of=(("prompt", "messages"),),
    ),
    "transform": HandlerConfig(
        (
            ConfigKey("value", "The result, with references."),
            *EXPRESSION_KEYS,
            ConfigKey("input", "The value for the transform_type."),
            ConfigKey(
                "transform_type", "What to do with the input.", ("text",), choices=TRANSFORM_TYPES
            ),
        ),
        at_most_one_of=(("value", "expression", "input"),),
    ),
    "sleep": HandlerConfig(
        (ConfigKey("seconds", "How long to wait. Default: 0.", ("number",), minimum=0),)
    ),
    "fail": HandlerConfig(
        (
            ConfigKey("message", "The text of the error."),
            ConfigKey("times", "How many attempts fail. Default: all.", ("number",), minimum=0),
        )
    ),
    "penstock.aggregate": HandlerConfig(
        (
            *INPUT_KEYS,
            ConfigKey(
                "aggregate_type",
                "How to combine the values. Default: list.",
                ("text",),
                choices=AGGREGATE_TYPES,
            ),
            ConfigKey(
                "operation", "The same as aggregate_type.", ("text",), choices=AGGREGATE_TYPES
            ),
        )
    ),
    "penstock.compute": HandlerConfig(
        (
            ConfigKey("operation", "What to compute.", ("text",), choices=OPERATIONS),
            ConfigKey("a", "The first number."),
            ConfigKey("b", "The second number."),
            *EXPRESSION_KEYS,
        ),
        one_of=(("operation", "expression"),),
    ),
    "penstock.validate": HandlerConfig(
        (
            *INPUT_KEYS,
            ConfigKey("schema", "A JSON Schema that the values should fit."),
            ConfigKey("required", "Names that must be there.", ("list",)),
        )
    ),
}


def config_keys(handler: str) -> tuple[str, ...]:
    """The keys that a built-in handler knows."""
    return HANDLER_CONFIGS[handler].names


class ConfigFault(msgspec.Struct, frozen=True):
    """What is wrong with a literal config."""

    code: str
    path: tuple[str | int, ...]
    message: str
    unknown: str = ""
    """The key that isn't known."""
    names: tuple[str, ...] = ()
    """Keys that may have been meant."""


ConfigCheck: TypeAlias = Callable[[Mapping[str, Any]], Iterable[ConfigFault]]


class ConfigRules(msgspec.Struct, frozen=True):
    """How the configs of a submission are judged."""

    checks: Mapping[str, ConfigCheck] = {}
    """By handler, for those that this process has, also in place of built-in ones."""
    is_lenient: bool = False
    """Faults are warnings: for mocks, and for routes on which a later call may bring the config."""
    has_models: bool = False
    """A provider in the settings names models, so that a config needn't."""


def config_faults(
    handler: str, config: Mapping[str, Any], rules: ConfigRules
) -> Iterable[ConfigFault]:
    check = rules.checks.get(handler)
    if check is not None:
        return check(config)
    shape = HANDLER_CONFIGS.get(handler)
    return () if shape is None else _faults(handler, shape, config, rules)


def _faults(
    handler: str, shape: HandlerConfig, config: Mapping[str, Any], rules: ConfigRules
) -> Iterator[ConfigFault]:
    handler = handler.removeprefix("penstock.")
    if not shape.is_open:
        for name in config:
            if name not in shape.names:
                message = f"{handler} has no key {name[:80]!r} in its config"
                yield ConfigFault("unknown_config", (name,), message, name, shape.names)
    for key in shape.keys:
        is_optional = key.name == "model" and rules.has_models
        if key.required and not is_optional and _is_missing(key, config):
            message = f'{handler} needs "{key.name}" in its config'
            yield ConfigFault("missing_config", (), message)
        value = config.get(key.name)
        fault = None if value is None or has_reference(value) else key.fault(value)
        if fault is not None:
            yield ConfigFault("bad_config", (key.name,), f'"{key.name}" {fault}')
    yield from _group_faults(handler, shape, config)


def _is_missing(key: ConfigKey, config: Mapping[str, Any]) -> bool:
    if "any" in key.kinds:
        return key.name not in config  # null is a value too
    return config.get(key.name) is None


def _group_faults(
    handler: str, shape: HandlerConfig, config: Mapping[str, Any]
) -> Iterator[ConfigFault]:
    for group in (*shape.one_of, *shape.at_most_one_of):
        present = [name for name in group if config.get(name) is not None]
        listed = " or ".join(f'"{name}"' for name in group)
        if len(present) > 1:
            message = f"{handler} takes only one of {listed} in its config"
            yield ConfigFault("bad_config", (present[1],), message)
        elif not present and group in shape.one_of:
            yield ConfigFault("missing_config", (), f"{handler} needs {listed} in its config")


def has_reference(value: Any) -> bool:
    """Whether the value is a text with `{{ … }}`, of which nothing is known before it runs."""
    return isinstance(value, str) and "{{" in value
