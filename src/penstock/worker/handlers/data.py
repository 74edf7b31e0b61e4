"""The handlers `aggregate`, `compute` and `validate`: small work on data.

They exist because documents of the public implementations use them. They run as
`penstock.aggregate` and so on, unless a worker has a handler of its own under the short name.
Nothing in a config is ever run as code: an operation is one of a list, an `expression` is CEL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from penstock.definition.handler_configs import INPUT_KEYS, config_keys
from penstock.definition.schema import lines_of
from penstock.definition.value_faults import NUMBER_CHARACTERS_MAX
from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal
from penstock.sandbox import Sandbox, schema_problems_in
from penstock.worker.context import Context
from penstock.worker.handlers.http import bad_config, check_keys, is_number
from penstock.worker.handlers.transform import TransformHandler

INPUTS = tuple(key.name for key in INPUT_KEYS)
"""Keys of a config that may hold the values; without any of them they are the parents' outputs."""
INPUT_BYTES_MAX = 4 * 1024 * 1024

AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "count": len,
    "sum": lambda values: sum(_numbers(values)),
    "average": lambda values: _average(_numbers(values)),
    "min": lambda values: min(_numbers(values), default=None),
    "max": lambda values: max(_numbers(values), default=None),
    "concat": lambda values: "".join(map(_text, _present(values))),
    "merge": lambda values: _merged(_present(values)),
}
OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: _divide(a, b),  # noqa: PLW0108 -- it stands further down
    "min": min,
    "max": max,
}


async def aggregate(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    check_keys(config, config_keys("penstock.aggregate"), ctx)

    values = _values_in(config)
    if values is None:
        values = list(_parent_outputs(ctx).values())
    if isinstance(values, Mapping):
        values = list(values.values())
    if not isinstance(values, list):
        raise bad_config(
            "inputs must be a list or an object; without it, the dependencies' outputs are used"
        )

    name = config.get("aggregate_type") or config.get("operation") or "list"
    result = _choose(AGGREGATES, name, "aggregate_type")(values)
    return {"result": _finite(result), "count": len(values)}


class ComputeHandler:
    """The `compute` handler: `a` and `b` with an `operation`, or a CEL `expression`.

    The `transform` handler evaluates the expression, within its limits.
    """

    def __init__(self, transform: TransformHandler) -> None:
        self._transform = transform

    async def __call__(self, config: dict[str, Any], ctx: Context) -> Any:
        check_keys(config, config_keys("penstock.compute"), ctx)
        if "expression" in config:
            names = ("expression", "variables")
            return await self._transform(
                {name: config[name] for name in names if name in config}, ctx
            )

        missing = [name for name in ("operation", "a", "b") if config.get(name) is None]
        if missing:
            raise bad_config(
                f"give operation, a and b, or a CEL expression (missing: {', '.join(missing)})"
            )
        operation = _choose(OPERATIONS, config["operation"], "operation")
        result = operation(_number(config["a"]), _number(config["b"]))
        return {"result": _finite(result)}


class ValidateHandler:
    """The `validate` handler says whether data fits a schema and has the required fields.

    It doesn't fail if the data doesn't fit: a condition on `valid` decides what follows from that.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def __call__(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        check_keys(config, config_keys("penstock.validate"), ctx)
        value = _values_in(config)
        if value is None:
            value = _parent_outputs(ctx)

        errors: list[str] = []
        schema = config.get("schema")
        if schema is not None:
            problems = await schema_problems_in(self._sandbox, schema, value, ctx.workflow)
            errors += lines_of(problems)

        required = config.get("required") or []
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise bad_config("required must be a list of names")
        fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        errors += [f"{name[:80]!r} is missing" for name in required if fields.get(name) is None]

        return {"valid": not errors, "errors": errors, "result": value}


def _parent_outputs(ctx: Context) -> dict[str, Any]:
    """The parents' outputs. Reading large ones would hold up everything else on this worker."""
    size = sum(map(len, ctx.raw_inputs.values()))
    if size > INPUT_BYTES_MAX:
        raise Terminal(
            f"the dependencies' outputs have {size:,} bytes; the limit is {INPUT_BYTES_MAX:,}",
            category=ErrorCategory.TOO_LARGE,
        )
    return dict(ctx.inputs)


def _values_in(config: Mapping[str, Any]) -> Any:
    """The values that a config has itself; None without any."""
    for name in INPUTS:
        if config.get(name) is not None:
            return config[name]
    return None


def _choose(table: Mapping[str, Any], name: Any, key: str) -> Any:
    function = table.get(name) if isinstance(name, str) else None
    if function is None:
        raise bad_config(f"{key} is {str(name)[:80]!r}; allowed: {', '.join(table)}")
    return function


def _present(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _numbers(values: list[Any]) -> list[float]:
    return [_number(value) for value in _present(values)]


def _number(value: Any) -> float:
    """The value as a number, also from a text, which is what a reference inside a text becomes."""
    if is_number(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, str) and len(value) <= NUMBER_CHARACTERS_MAX:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
    raise _failed(f"{_text(value)[:80]!r} is not a number")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _divide(a: float, b: float) -> float:
    if b == 0:
        raise _failed("division by zero")
    return a / b


def _average(numbers: list[float]) -> float:
    return _divide(sum(numbers), len(numbers))


def _merged(values: list[Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for value in values:
        if not isinstance(value, Mapping):
            raise _failed("merge works on objects only")
        merged.update(value)
    return merged


def _finite(result: Any) -> Any:
    if isinstance(result, float) and not math.isfinite(result):
        raise _failed(f"the result is {result}, which JSON can't represent")
    return result


def _failed(message: str) -> Terminal:
    return Terminal(message, category=ErrorCategory.COMPUTE)
