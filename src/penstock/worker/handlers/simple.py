"""The small handlers: `noop`, `echo`, `sleep` and `fail` for tests and demos, and `transform`."""

from __future__ import annotations

import asyncio
import base64
import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from penstock.definition.condition import evaluate_cel
from penstock.definition.template import Missing
from penstock.errors import Retryable, Terminal
from penstock.worker.context import Context
from penstock.worker.handlers.http import bad_config, check_keys, is_number

# Words that CEL keeps for itself, and the two maps; a parent of such a name is found in `nodes`.
RESERVED = frozenset(
    {"as", "bool", "break", "bytes", "const", "continue", "double", "duration", "dyn", "else", "false", "for"}
    | {"function", "if", "import", "in", "inputs", "int", "let", "list", "loop", "map", "namespace", "nodes", "null"}
    | {"null_type", "package", "return", "string", "timestamp", "true", "type", "uint", "var", "void", "while"}
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


async def noop(config: dict[str, Any], ctx: Context) -> dict[str, Any]:  # noqa: ARG001 -- as every handler
    return {"status": "ok"}


async def echo(config: dict[str, Any], ctx: Context) -> dict[str, Any]:  # noqa: ARG001 -- as every handler
    return config


async def sleep(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    check_keys(config, ("seconds",), ctx)
    seconds = config.get("seconds", 0)
    if not is_number(seconds) or seconds < 0:
        raise bad_config(f"seconds is {seconds!r}; allowed: a number, 0 or more")
    await asyncio.sleep(seconds)
    return {"slept_seconds": seconds}


async def fail(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Fails the first `times` attempts, or all of them."""
    check_keys(config, ("message", "times"), ctx)
    times = config.get("times")
    if times is not None and (not is_number(times) or times < 0):
        raise bad_config(f"times is {times!r}; allowed: a number, 0 or more")
    if times is None or ctx.attempt <= times:
        raise Retryable(str(config.get("message") or "failed on purpose"))
    return {"attempt": ctx.attempt}


async def transform(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """`value` as it is, or a CEL `expression` over the parents' outputs: by id, or as `nodes["an id"]`.

    `inputs` is the same map. CEL itself stops an expression after 10,000 steps of iteration. `input` with a
    `transform_type` is how documents of the public implementations write it; without a config, the result is the
    parents' outputs by id.
    """
    check_keys(config, ("value", "expression", "input", "transform_type"), ctx)
    given = [name for name in ("value", "expression", "input") if name in config]
    if len(given) > 1:
        raise bad_config("give value, expression or input, one of them")
    if "transform_type" in config and given != ["input"]:
        raise bad_config("transform_type goes with input")
    if not given:
        return {"result": dict(ctx.inputs)}
    if "value" in config:
        return {"result": config["value"]}
    if "input" in config:
        return {"result": _transformed(config["input"], config.get("transform_type"))}
    expression = config["expression"]
    if not isinstance(expression, str):
        raise bad_config("expression must be text")
    return {"result": _to_json(_evaluated(expression, ctx.inputs))}


def _transformed(value: Any, kind: Any) -> Any:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    match kind:
        case None | "none" | "identity":
            return value
        case "uppercase":
            return text.upper()
        case "lowercase":
            return text.lower()
        case "json_stringify":
            return msgspec.json.encode(value).decode()
        case "json_parse":
            try:
                return msgspec.json.decode(text)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise _failed(f"the input isn't JSON: {error}") from None
    allowed = "uppercase, lowercase, json_parse, json_stringify"
    raise bad_config(f"transform_type is {str(kind)[:80]!r}; allowed: {allowed}")


def _evaluated(expression: str, inputs: Mapping[str, Any]) -> Any:
    # Converting a value for CEL costs as much as the value is large, so only what the text may refer to is handed in.
    named = {name: value for name, value in inputs.items() if name in expression and name not in RESERVED}
    variables = {name: value for name, value in named.items() if _IDENTIFIER.fullmatch(name)}
    variables |= {name: dict(inputs) for name in ("inputs", "nodes") if name in expression}
    try:
        return evaluate_cel(expression, variables)
    except Missing as error:
        raise _failed(str(error)) from None
    except (ValueError, RecursionError, OverflowError) as error:
        raise _failed(f"the expression {expression!r} can't be read: {_cleaned(str(error), inputs)}") from None


def _failed(message: str) -> Terminal:
    return Terminal(message, category="expression")


def _cleaned(reason: str, inputs: Mapping[str, Any]) -> str:
    """CEL puts a code and a position in front of its message, a code behind it, and draws an arrow below it."""
    if unknown := re.search(r"undeclared reference to '([^']+)'", reason):
        return f"'{unknown[1]}' is unknown (parents of this node: {', '.join(inputs) or 'none'})"[:300]
    first = re.sub(r"^([A-Z_]+: )?(ERROR: <input>:-?\d+:-?\d+: )?", "", reason.partition("\n")[0])
    return re.sub(r" \[[A-Z_]+\]$", "", first)[:300]


def _to_json(value: Any) -> Any:
    """As CEL's own mapping to JSON has it: bytes in base64, times as text, durations in seconds."""
    match value:
        case dict():
            return {key if isinstance(key, str) else str(_to_json(key)): _to_json(item) for key, item in value.items()}
        case list():
            return [_to_json(item) for item in value]
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return f"{value.total_seconds():g}s"
        case None | bool() | int() | str() | float() if not isinstance(value, float) or math.isfinite(value):
            return value
    raise _failed(f"the expression gives {value}, which JSON can't hold")
