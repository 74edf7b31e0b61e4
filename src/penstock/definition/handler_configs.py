"""The configs of the built-in handlers: which keys they have, and which values these take.

`HANDLER_CONFIGS` is the one place that says so. Submission checks literal values by it, workers
know their keys from it, the JSON Schema of the document and docs/handlers.md list what it has.
Values with references are judged by the worker, which knows them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from penstock.definition.fields import excerpt_of, has_reference, kind_of
from penstock.definition.llm_messages import message_faults, tool_faults
from penstock.definition.model import CHILD_HANDLER, NOTIFY
from penstock.definition.value_faults import (
    IsUnknown,
    ValueFault,
    header_faults,
    operand_faults,
    parameter_faults,
    schema_faults,
    status_faults,
)

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
END_STATES = ("COMPLETED", "FAILED")
OPERATORS = ("==", "!=", ">", ">=", "<", "<=", "in", "contains")
TRANSFORM_TYPES = ("uppercase", "lowercase", "json_parse", "json_stringify", "none", "identity")
AGGREGATE_TYPES = ("list", "count", "sum", "average", "min", "max", "concat", "merge")
NOTIFY_MAX = 10
"""Addresses that one approval may name."""
NOTIFY_EXAMPLE = "https://hooks.example.com/x"
ON_TIMEOUT = ("fail", "continue")
ON_EXPIRE = ("reject", "approve", "fail")
COMMENT = ("never", "on_reject", "always")
OPERATIONS = ("add", "subtract", "multiply", "divide", "min", "max")
REPAIRS_MAX = 5
NOT_EXTRA = {
    **dict.fromkeys(
        ("messages", "model", "temperature", "max_tokens", "tools", "tool_choice"),
        "the config has a key for it",
    ),
    "stream": "the answer is read as a whole",
    "n": "one answer is read",
}
"""Parameters of a chat completion that `extra` may not have, and why."""


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
    maximum: float | None = None
    is_whole: bool = False
    refused_names: Mapping[str, str] = {}
    """Names that an object may not have, and why."""
    inner_faults: Callable[[Any, IsUnknown], Iterable[ValueFault]] | None = None
    """What else is wrong with a value of the right kind, and where inside it."""
    pattern: str = ""
    """How a text must begin, as a regular expression that JSON Schema has too."""
    pattern_name: str = ""
    """The pattern in words."""

    def faults(self, value: Any, is_unknown: IsUnknown = has_reference) -> Iterator[ValueFault]:
        """What is wrong with a value, and where in it."""
        if is_unknown(value):
            return
        fault = self._fault(value)
        if fault is not None:
            yield (), f'"{self.name}" {fault}'
            return
        if isinstance(value, Mapping):
            for name in value.keys() & self.refused_names.keys():
                reason = self.refused_names[name]
                yield (name,), f'"{self.name}" can\'t have "{name}": {reason}'
        if self.inner_faults is not None:
            for path, message in self.inner_faults(value, is_unknown):
                yield path, message if path else f'"{self.name}" {message}'

    def _fault(self, value: Any) -> str | None:
        is_allowed = any(isinstance(value, KINDS[kind]) for kind in self.kinds)
        if not is_allowed or (isinstance(value, bool) and "any" not in self.kinds):
            allowed = " or ".join(KIND_NAMES[kind] for kind in self.kinds)
            return f"must be {allowed}, not {kind_of(value)}"
        if self.choices and (value.upper() if self.any_case else value) not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {excerpt_of(value)}"
        if self.pattern and isinstance(value, str) and not re.match(self.pattern, value):
            return f"must be {self.pattern_name}, not {excerpt_of(value)}"
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
        if self.maximum is not None and not value <= self.maximum:
            return f"must be at most {self.maximum:g}, not {excerpt_of(value)}"
        if self.is_whole and value != int(value):
            return f"must be a whole number, not {excerpt_of(value)}"
        return None


class HandlerConfig(msgspec.Struct, frozen=True):
    keys: tuple[ConfigKey, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    """Of each group exactly one key must be there."""
    at_most_one_of: tuple[tuple[str, ...], ...] = ()
    requires: tuple[tuple[str, str], ...] = ()
    """Keys that have no meaning without another one."""
    is_open: bool = False
    """Any other keys are allowed."""
    hint: str = ""
    """What to do with a key that isn't like any of these."""

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


def _address_faults(value: Any, is_unknown: IsUnknown) -> Iterator[ValueFault]:
    """What is wrong with the addresses that are told of an approval."""
    addresses = value if isinstance(value, list) else [value]
    if not 0 < len(addresses) <= NOTIFY_MAX:
        yield (), f"must have 1 to {NOTIFY_MAX} addresses, not {len(addresses)}"
    for i, address in enumerate(addresses):
        if is_unknown(address):
            continue
        if not isinstance(address, str) or not re.match("https?://.", address):
            path = (i,) if isinstance(value, list) else ()
            message = f"must have addresses such as {NOTIFY_EXAMPLE}, not {excerpt_of(address)}"
            yield path, f'"notify" {message}' if path else message


NOTIFY_KEY = ConfigKey(
    "notify",
    "Addresses that are told of it, by an HTTP POST.",
    ("list", "text"),
    inner_faults=_address_faults,
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
    "terminate": HandlerConfig(
        (
            ConfigKey(
                "state", "How the execution ends.", ("text",), required=True, choices=END_STATES
            ),
            ConfigKey("output", "The execution's output. Default: as if it had ended by itself."),
            ConfigKey("message", "The text of the execution's error, if it is FAILED.", ("text",)),
        )
    ),
    "call_external_service": HandlerConfig(
        (
            ConfigKey(
                "url",
                "The address, http or https.",
                ("text",),
                required=True,
                pattern="^[Hh][Tt][Tt][Pp][Ss]?://[^/]",
                pattern_name="an address that begins with http:// or https://",
            ),
            ConfigKey(
                "method",
                "The HTTP method. Default: POST with a body, otherwise GET.",
                ("text",),
                choices=METHODS,
                any_case=True,
            ),
            ConfigKey(
                "headers",
                "Headers; those with null are left out.",
                ("object",),
                inner_faults=header_faults,
            ),
            ConfigKey(
                "params",
                "The query string; null is left out, a list repeats the name.",
                ("object",),
                inner_faults=parameter_faults,
            ),
            ConfigKey("body", "Text, or an object that is sent as JSON or as a form."),
            ConfigKey("json", "Any JSON value, sent as the body."),
            ConfigKey("timeout_seconds", "How long the call may take.", ("number",), above=0),
            ConfigKey(
                "expect_status",
                "A status, or a list of them, that is success.",
                ("number", "list"),
                inner_faults=status_faults,
            ),
        ),
        at_most_one_of=(("body", "json"),),
    ),
    "llm_service": HandlerConfig(
        (
            ConfigKey("prompt", "What the user says."),
            ConfigKey(
                "messages",
                "The messages, instead of a prompt.",
                ("list",),
                inner_faults=message_faults,
            ),
            ConfigKey("model", "The name of the model.", ("text",), required=True),
            ConfigKey("system", "The system message.", ("text",)),
            ConfigKey("temperature", "Passed to the model.", ("number",)),
            ConfigKey("max_tokens", "Passed to the model.", ("number",)),
            ConfigKey(
                "response_schema",
                "A JSON Schema that the reply must fit.",
                inner_faults=schema_faults,
            ),
            ConfigKey(
                "repairs",
                "How often a reply that doesn't fit is sent back to the model. Default: 1.",
                ("number",),
                minimum=0,
                maximum=REPAIRS_MAX,
                is_whole=True,
            ),
            ConfigKey(
                "tools",
                "The functions that the model may call.",
                ("list",),
                inner_faults=tool_faults,
            ),
            ConfigKey(
                "tool_choice",
                "auto, none, required, or the name of a tool that must be called.",
                ("text", "object"),
            ),
            ConfigKey(
                "extra",
                "Other parameters of the request, sent as they are; null takes one out.",
                ("object",),
                refused_names=NOT_EXTRA,
            ),
            ConfigKey("provider", "The name of a provider in the settings.", ("text",)),
        ),
        one_of=(("prompt", "messages"),),
        requires=(("tool_choice", "tools"),),
        hint='; parameters that only the model knows go into "extra"',
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
        requires=(("transform_type", "input"),),
    ),
    "sleep": HandlerConfig(
        (ConfigKey("seconds", "How long to wait. Default: 0.", ("number",), minimum=0),)
    ),
    "wait": HandlerConfig(
        (
            ConfigKey("seconds", "How long to wait, up to 10 years.", ("number",), minimum=0),
            ConfigKey(
                "until",
                "When to go on: a Unix time, a time with an offset, or a local time.",
                ("text", "number"),
            ),
            ConfigKey("timezone", "Of a local time, as in Europe/Berlin.", ("text",)),
        ),
        one_of=(("seconds", "until"),),
    ),
    "approval": HandlerConfig(
        (
            ConfigKey("title", "What is to be decided, in a line.", ("text",), required=True),
            ConfigKey("text", "What there is to know about it."),
            ConfigKey("form", "A JSON Schema of what the decision brings.", ("object",)),
            ConfigKey("approvers", "Who may decide: scope, keys, not_starter.", ("object",)),
            ConfigKey("needed", "How many must approve. Default: 1.", ("number",), minimum=1),
            ConfigKey(
                "comment", "When a comment is needed. Default: never.", ("text",), choices=COMMENT
            ),
            ConfigKey(
                "expires_seconds",
                "How long there is to decide. Default: for ever.",
                ("number",),
                above=0,
            ),
            ConfigKey(
                "on_expire",
                "What happens then. Default: reject.",
                ("text",),
                choices=ON_EXPIRE,
            ),
            ConfigKey(
                "on_reject",
                "Whether a rejection fails the node. Default: continue.",
                ("text",),
                choices=ON_TIMEOUT,
            ),
            NOTIFY_KEY,
        )
    ),
    "signal": HandlerConfig(
        (
            ConfigKey("name", "The name of the signal to wait for.", ("text",)),
            ConfigKey("names", "Names: the first signal of any of them is taken.", ("list",)),
            ConfigKey("correlation", "Takes only signals with this text.", ("text", "number")),
            ConfigKey("schema", "A JSON Schema that the payload must fit."),
            ConfigKey("count", "Waits for so many, and gives them as a list.", ("number",)),
            ConfigKey(
                "timeout_seconds", "How long to wait. Default: for ever.", ("number",), above=0
            ),
            ConfigKey(
                "on_timeout",
                "Whether the node fails then. Default: fail.",
                ("text",),
                choices=ON_TIMEOUT,
            ),
        ),
        one_of=(("name", "names"),),
    ),
    CHILD_HANDLER: HandlerConfig(
        (
            ConfigKey(
                "workflow",
                "The workflow to run, as in billing or billing@stable; or one reference to it.",
                ("text",),
                required=True,
            ),
            ConfigKey("input", "Its input. Default: the defaults of its document.", ("object",)),
        )
    ),
    "fail": HandlerConfig(
        (
            ConfigKey("message", "The text of the error."),
            ConfigKey("times", "How many attempts fail. Default: all.", ("number",), minimum=0),
        )
    ),
    NOTIFY: HandlerConfig((NOTIFY_KEY,), is_open=True),
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
            ConfigKey("a", "The first number.", inner_faults=operand_faults),
            ConfigKey("b", "The second number.", inner_faults=operand_faults),
            *EXPRESSION_KEYS,
        ),
        one_of=(("operation", "expression"),),
        requires=(("operation", "a"), ("operation", "b")),
    ),
    "penstock.validate": HandlerConfig(
        (
            *INPUT_KEYS,
            ConfigKey(
                "schema", "A JSON Schema that the values should fit.", inner_faults=schema_faults
            ),
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
    hint: str = ""
    """What to do if none of them was."""


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
            if name not in shape.names and not has_reference(name):
                message = f"{handler} has no key {name[:80]!r} in its config"
                yield ConfigFault("unknown_config", (name,), message, name, shape.names, shape.hint)
    for key in shape.keys:
        is_optional = key.name == "model" and rules.has_models
        if key.required and not is_optional and _is_missing(key, config):
            message = f'{handler} needs "{key.name}" in its config'
            yield ConfigFault("missing_config", (), message)
        value = config.get(key.name)
        if value is not None:
            for path, message in key.faults(value):
                yield ConfigFault("bad_config", (key.name, *path), message)
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
    for name, needed in shape.requires:
        if config.get(name) is not None and needed not in config:
            message = f'{handler} takes "{name}" only with "{needed}" in its config'
            yield ConfigFault("bad_config", (name,), message)
