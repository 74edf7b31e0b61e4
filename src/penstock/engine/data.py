"""Data nodes: `input`, `output`, `decision`, `terminate`.

Pure functions of recorded values, evaluated in the decision itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from penstock.definition.handler_configs import END_STATES
from penstock.definition.model import TERMINATE
from penstock.definition.template import Missing


class Recorded(Protocol):
    """What has been recorded: the input, and outputs as JSON text."""

    @property
    def input(self) -> Any: ...
    def raw(self, node_id: str) -> bytes: ...


OUTPUT_BYTES_MAX = 64 * 1024 * 1024


def evaluate(handler: str, config: dict[str, Any], scope: Recorded, parents: list[str]) -> bytes:
    """The node's output as JSON. Raises `Missing` with a text for the user."""
    if handler == "input":
        value = scope.input
        if isinstance(value, dict):
            value = {**config, **value}
        return msgspec.json.encode(value)

    if handler == "output":
        if config:
            return msgspec.json.encode(config)
        outputs = {node_id: scope.raw(node_id) for node_id in parents}
        size = sum(map(len, outputs.values()))
        if size > OUTPUT_BYTES_MAX:
            raise Missing(
                f"the outputs of its parents have {size:,} bytes together;"
                f" the limit is {OUTPUT_BYTES_MAX:,}; name what is needed of them in its config"
            )
        undecoded = {node_id: msgspec.Raw(output) for node_id, output in outputs.items()}
        return msgspec.json.encode(undecoded)

    if handler == TERMINATE:
        return msgspec.json.encode(_termination(config))

    return msgspec.json.encode({"result": decide(config)})


class Termination(msgspec.Struct, omit_defaults=True):
    """What a `terminate` node decides, as JSON in the place of its output."""

    state: str
    output: Any = msgspec.UNSET
    message: str | None = None


def _termination(config: dict[str, Any]) -> Termination:
    state = config.get("state")
    message = config.get("message")
    if state not in END_STATES:
        raise Missing(f'"state" is {_excerpt(state)}; it must be {" or ".join(END_STATES)}')
    if message is not None and not isinstance(message, str):
        raise Missing(f'"message" is {_excerpt(message)}; it must be text')
    return Termination(state, config.get("output", msgspec.UNSET), message)


def decide(config: dict[str, Any]) -> bool:
    missing = [name for name in ("value_a", "operator", "value_b") if name not in config]
    if missing:
        raise Missing(f"a decision needs {', '.join(missing)} in its config")
    operator = config["operator"]
    compare = OPERATORS.get(operator) if isinstance(operator, str) else None
    if compare is None:
        raise Missing(f"the operator {operator!r} isn't known; use one of {' '.join(OPERATORS)}")
    try:
        return bool(compare(config["value_a"], config["value_b"]))
    except TypeError:
        left = _excerpt(config["value_a"])
        right = _excerpt(config["value_b"])
        raise Missing(f"{left} {operator} {right} can't be compared: the types differ") from None


def _excerpt(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def _equal(a: Any, b: Any) -> bool:
    """JSON equality at any depth: true isn't 1."""
    pairs = [(a, b)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            pairs += [(a[key], b[key]) for key in a]
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            pairs += zip(a, b, strict=True)
        elif isinstance(a, (dict, list)) or isinstance(a, bool) != isinstance(b, bool) or a != b:
            return False
    return True


def _require_ordered(a: Any, b: Any) -> None:
    """Raises `TypeError` unless both are numbers or both are texts."""
    are_texts = isinstance(a, str) and isinstance(b, str)
    if not are_texts and not (_is_number(a) and _is_number(b)):
        raise TypeError


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _less(a: Any, b: Any) -> bool:
    _require_ordered(a, b)
    return bool(a < b)


def _less_or_equal(a: Any, b: Any) -> bool:
    _require_ordered(a, b)
    return bool(a <= b)


def _contains(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return any(_equal(item, b) for item in a)
    if isinstance(a, (str, dict)) and isinstance(b, str):
        return b in a
    raise TypeError


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda a, b: not _equal(a, b),
    ">": lambda a, b: _less(b, a),
    ">=": lambda a, b: _less_or_equal(b, a),
    "<": _less,
    "<=": _less_or_equal,
    "in": lambda a, b: _contains(b, a),
    "contains": _contains,
}
