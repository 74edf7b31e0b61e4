"""Preparation: evaluating a node's condition and config in the sandbox, before the node starts.

Only what may be expensive needs one: other executions wait for the loop. The core notes a
`Preparation`: the node's condition and config with the recorded values that they refer to,
undecoded. `run` works many of them out in a sandbox process; each gives a `Prepared`, which the
core is given and acts on as if it had done the work itself. Nothing here is recorded: an owner that
dies is followed by one that asks again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from penstock.definition.condition import Condition, Converted
from penstock.definition.config import Config, SecretText, put_over
from penstock.definition.template import Missing, opened
from penstock.engine.data import evaluate
from penstock.engine.events import TaskError, Value

FUNCTION = "penstock.engine.preparing:run"
INPUT = ""
"""The name that no node has: the execution's input."""
EXECUTION = ""
"""Among states, the execution's."""


class Preparation(msgspec.Struct):
    node_id: str
    handler: str
    is_data: bool
    condition: Condition | None
    """None for what has been decided, or needs no decision."""
    config: Config | None
    """None if nothing in it has to be looked up."""
    overrides: dict[str, Any]
    aliases: dict[str, dict[str, str]]
    execution: dict[str, Any]
    missing: dict[str, str]
    """By node without an output, why it has none."""
    values: dict[str, bytes]
    """Undecoded outputs by node, and the input; inside of an item by `keys`."""
    outcomes: dict[str, dict[str, Any]] = {}
    """By node that it asks about, how that has ended."""
    ending: dict[str, Any] = {}
    """How the execution ends, as far as is known."""
    states: dict[str, str] = {}
    """The states in these."""
    keys: dict[str, str] = {}
    """Inside of an item: what each name stands for. In another item it stands for another value."""

    @property
    def category(self) -> str:
        """Of an error that keeps it from being worked out."""
        return "config" if self.condition is None else "condition"


class Prepared(msgspec.Struct, array_like=True):
    outcome: Literal["start", "skip", "fail"]
    config: Value | None = None
    secrets: tuple[SecretText, ...] = ()
    output: bytes | None = None
    """Of a data node."""
    error: TaskError | None = None
    missing: tuple[str, ...] = ()
    """Nodes that had no output then: if one has since, this is out of date."""
    states: dict[str, str] = {}
    """The states that it asked for then: if one has changed, this is out of date too."""


class _Batch(msgspec.Struct):
    names: list[str]
    """Of the values, which follow as parts of their own."""
    preparations: list[Preparation]


def failed(preparation: Preparation, message: str) -> Prepared:
    """What an overrun of the sandbox makes of a preparation."""
    what = "config"
    if preparation.condition is not None:
        what = f"condition {preparation.condition.source[:80]!r}"
    error = TaskError(preparation.category, f"the {what} can't be evaluated: {message}")
    return Prepared("fail", error=error)


def parts_of(preparations: Sequence[Preparation]) -> list[bytes]:
    """As a job of the sandbox. Values that several need are sent once, and decoded once."""
    values: dict[str, bytes] = {}
    for preparation in preparations:
        values.update(preparation.values)
    bare = [msgspec.structs.replace(preparation, values={}) for preparation in preparations]
    return [msgspec.msgpack.encode(_Batch(list(values), bare)), *values.values()]


def run(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The job: a `Prepared` for each preparation."""
    batch = msgspec.msgpack.decode(parts[0], type=_Batch)
    texts = zip(batch.names, parts[1:], strict=True)
    values = {name: msgspec.Raw(text) for name, text in texts}
    decoded: dict[str, Any] = {}
    converted = _convert_shared(batch.preparations, values, decoded)
    for preparation in batch.preparations:
        prepared = prepare(preparation, _Values(preparation, values, decoded), converted)
        prepared.missing = tuple(preparation.missing)
        prepared.states = preparation.states
        yield msgspec.msgpack.encode(prepared)


def _convert_shared(
    preparations: Sequence[Preparation], values: Mapping[str, msgspec.Raw], decoded: dict[str, Any]
) -> Converted:
    """What all their conditions look at, except those that look at what isn't there."""
    aliases: dict[str, dict[str, str]] = {}
    conditions: list[Condition] = []
    for preparation in preparations:
        aliases.update(preparation.aliases)
        condition = preparation.condition
        if condition is not None and _can_share(preparation, condition):
            conditions.append(condition)
    combined = msgspec.structs.replace(preparations[0], aliases=aliases, missing={})
    return Converted(conditions, _Values(combined, values, decoded))


def _can_share(preparation: Preparation, condition: Condition) -> bool:
    if condition.templates or condition.outcomes or condition.either:
        return False
    return not (preparation.missing or preparation.keys)


def prepare(preparation: Preparation, scope: _Values, converted: Converted) -> Prepared:
    try:
        if not _is_true(preparation, scope, converted):
            return Prepared("skip")
    except (Missing, RecursionError) as error:
        return _fail("condition", error)

    if preparation.config is None:
        return Prepared("start")
    try:
        return _resolve(preparation, preparation.config, scope)
    except (Missing, RecursionError) as error:
        return _fail("config", error)


def _fail(category: str, error: Exception) -> Prepared:
    message = "a value that it refers to is nested too deeply"
    if isinstance(error, Missing):
        message = str(error)
    return Prepared("fail", error=TaskError(category, message))


def _is_true(preparation: Preparation, scope: _Values, converted: Converted) -> bool:
    condition = preparation.condition
    if condition is None:
        return True
    if _can_share(preparation, condition):
        return condition.decide(converted, scope)
    return condition.decide(condition.bind(scope), scope)


def _resolve(preparation: Preparation, config: Config, scope: _Values) -> Prepared:
    resolved, secrets = put_over(*config.resolve(scope), preparation.overrides)
    if not preparation.is_data:
        return Prepared("start", config=msgspec.json.encode(resolved), secrets=secrets)
    if preparation.handler == "decision":
        # it compares what others only carry
        resolved = msgspec.json.decode(msgspec.json.encode(resolved))
    output = evaluate(preparation.handler, resolved, scope, [])
    return Prepared("start", output=output)


class _Values:
    """Where references look, in the sandbox: recorded values.

    They are decoded only as far as somebody looks into them.
    """

    def __init__(
        self, preparation: Preparation, values: Mapping[str, msgspec.Raw], decoded: dict[str, Any]
    ) -> None:
        self._preparation = preparation
        self._values = values
        self._decoded = decoded

    def output(self, node_id: str) -> Any:
        if node_id in self._preparation.missing:
            raise Missing(self._preparation.missing[node_id])
        key = self._preparation.keys.get(node_id, node_id)
        if key not in self._decoded:
            self._decoded[key] = opened(self._values[key])
        return self._decoded[key]

    def raw(self, node_id: str) -> bytes:
        return bytes(self._values[self._preparation.keys.get(node_id, node_id)])

    def aliases(self, node_id: str) -> Mapping[str, str]:
        return self._preparation.aliases.get(node_id, {})

    def outcome(self, node_id: str) -> Mapping[str, Any]:
        return self._preparation.outcomes[node_id]

    @property
    def ending(self) -> Mapping[str, Any]:
        return self._preparation.ending

    @property
    def input(self) -> Any:
        return self.output(INPUT)

    @property
    def execution(self) -> Mapping[str, Any]:
        return self._preparation.execution
