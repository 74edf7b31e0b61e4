"""The functions of conditions and expressions: CEL's, its extensions', and a few of our own.

`FUNCTIONS` and `METHODS` are the whole list, which docs/functions.md explains. What an expression
gives depends on its values only: there is no clock and no random number.

CEL has whole numbers and decimal numbers, and by itself no arithmetic between the two. JSON has one
kind: whether an API answers 10 or 10.5 must not decide whether `api.price * 1.2` works. So
`extension` adds the arithmetic of a whole number with a decimal one, which gives a decimal one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

EXTENSIONS = """\
extensions:
  - {name: strings, version: 4}
  - {name: math, version: 2}
  - {name: lists, version: 2}
  - {name: encoders, version: 0}
"""
"""The extensions of CEL that are on; a version is fixed, so that what there is never changes."""
INT64 = range(-(2**63), 2**63)


CHEAP_FUNCTIONS = frozenset(
    [
        "bool",
        "double",
        "duration",
        "dyn",
        "has",
        "int",
        "math.abs",
        "math.bitAnd",
        "math.bitNot",
        "math.bitOr",
        "math.bitShiftLeft",
        "math.bitShiftRight",
        "math.bitXor",
        "math.ceil",
        "math.floor",
        "math.greatest",
        "math.isFinite",
        "math.isInf",
        "math.isNaN",
        "math.least",
        "math.round",
        "math.sign",
        "math.sqrt",
        "math.trunc",
        "max",
        "min",
        "size",
        "sort",
        "string",
        "sum",
        "timestamp",
        "type",
        "uint",
    ]
)
"""Functions that cost no more than a look at their values, and give no more than these have."""
CHEAP_METHODS = frozenset(
    [
        "all",
        "charAt",
        "contains",
        "endsWith",
        "exists",
        "exists_one",
        "filter",
        "lowerAscii",
        "map",
        "max",
        "min",
        "size",
        "startsWith",
        "sum",
        "trim",
        "upperAscii",
    ]
)
FUNCTIONS = CHEAP_FUNCTIONS.union(
    [
        "base64.decode",
        "base64.encode",
        "bytes",
        "join",
        "lists.range",
        "matches",
        "split",
        "strings.quote",
    ]
)
METHODS = CHEAP_METHODS.union(
    [
        "distinct",
        "flatten",
        "format",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getFullYear",
        "getHours",
        "getMilliseconds",
        "getMinutes",
        "getMonth",
        "getSeconds",
        "indexOf",
        "join",
        "lastIndexOf",
        "matches",
        "replace",
        "reverse",
        "slice",
        "sort",
        "sortBy",
        "split",
        "substring",
    ]
)
NAMESPACES = frozenset(name.partition(".")[0] for name in FUNCTIONS if "." in name)
"""What `math.round` begins with, and its like."""


def extension(cel: Any) -> Any:
    """What CEL and its extensions don't have, for an environment of the library `cel`."""
    kinds = cel.Type
    pairs = ((kinds.INT, kinds.DOUBLE), (kinds.DOUBLE, kinds.INT))
    any_list = kinds.List(kinds.DYN)
    declared: dict[str, list[Any]] = {}

    def declare(name: str, function: Callable[..., Any], result: Any, *parameters: Any) -> None:
        overloads = declared.setdefault(name.removeprefix("."), [])
        overload = cel.Overload(
            id=f"penstock_{name}_{len(overloads)}",
            return_type=result,
            parameters=list(parameters),
            is_member=name.startswith("."),
            impl=function,
        )
        overloads.append(overload)

    for name, function in ARITHMETIC.items():
        for left, right in pairs:
            declare(name, function, kinds.DOUBLE, left, right)
    declare("_%_", ARITHMETIC["_%_"], kinds.DOUBLE, kinds.DOUBLE, kinds.DOUBLE)
    for name in ("math.round", "math.ceil", "math.floor", "math.trunc"):
        declare(name, float, kinds.DOUBLE, kinds.INT)
    for name, of_list in {"sum": _sum, "min": _min, "max": _max}.items():
        declare(name, of_list, kinds.DYN, any_list)
        declare(f".{name}", of_list, kinds.DYN, any_list)
    declare("min", lambda x, y: _min([x, y]), kinds.DYN, kinds.DYN, kinds.DYN)
    declare("max", lambda x, y: _max([x, y]), kinds.DYN, kinds.DYN, kinds.DYN)
    declare("sort", _sort, any_list, any_list)
    declare("join", _join, kinds.STRING, any_list, kinds.STRING)
    declare("split", _split, kinds.List(kinds.STRING), kinds.STRING, kinds.STRING)
    functions = [cel.FunctionDecl(name, overloads) for name, overloads in declared.items()]
    return cel.CelExtension("penstock", functions)


def _divide(left: float, right: float) -> float:
    """As CEL divides decimal numbers."""
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)


def _remainder(left: float, right: float) -> float:
    if not right:
        raise ValueError("modulus by zero")
    return math.fmod(left, right)


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "_+_": lambda left, right: float(left) + float(right),
    "_-_": lambda left, right: float(left) - float(right),
    "_*_": lambda left, right: float(left) * float(right),
    "_/_": lambda left, right: _divide(float(left), float(right)),
    "_%_": lambda left, right: _remainder(float(left), float(right)),
}
"""Of a whole number and a decimal one; the remainder also of two decimal ones, as CEL has none."""


def _sum(items: list[Any]) -> float:
    if not all(_is_number(item) for item in items):
        raise ValueError("sum() needs a list of numbers")
    total = sum(items)
    if isinstance(total, int) and total not in INT64:
        raise ValueError("the sum doesn't fit in 64 bits")
    return total  # type: ignore[no-any-return]


def _min(items: list[Any]) -> Any:
    _check_order(items, "min")
    return min(items)


def _max(items: list[Any]) -> Any:
    _check_order(items, "max")
    return max(items)


def _sort(items: list[Any]) -> list[Any]:
    if items:
        _check_order(items, "sort")
    return sorted(items)


def _check_order(items: list[Any], name: str) -> None:
    if not items:
        raise ValueError(f"{name}() of an empty list has no value")
    if all(_is_number(item) for item in items):
        return
    kinds = {type(item) for item in items}
    if kinds not in ({str}, {bool}):
        raise ValueError(f"{name}() needs numbers only, or texts only")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _join(items: list[Any], separator: str) -> str:
    return separator.join(
        item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items
    )


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else list(text)
