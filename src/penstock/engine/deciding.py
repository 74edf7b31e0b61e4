"""Deciding conditions: at once where that is provably cheap, else elsewhere."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from penstock.definition.cel import INLINE_LOOP_BYTES, size_of
from penstock.definition.condition import Condition, Formula
from penstock.definition.template import Missing
from penstock.engine.outputs import Outputs
from penstock.engine.preparing import INPUT, Preparation

if TYPE_CHECKING:
    from penstock.engine.state import Execution

COMPILED_BYTES = 10
"""What a character of a program that isn't compiled yet counts as."""
LOOP_BYTES = 32
"""What a byte that a comprehension looks at counts as."""


def is_true(execution: Execution, condition: Condition, scope: Outputs) -> bool | None:
    """The condition's result; None if it may look at more than is cheap. Raises `Missing`."""
    values = condition.bind(scope)
    cost = cost_of(condition, values)
    if cost is None or cost > execution.inline_bytes:
        return None
    execution.inline_bytes -= cost
    return condition.decide(values, scope)


def cost_of(formula: Formula, values: dict[str, Any]) -> int | None:
    """What evaluating a program with these values counts as; None if it may be dear."""
    size = size_of(values, formula.inline_bytes)
    if size > formula.inline_bytes:
        return None
    has_loop = formula.inline_bytes <= INLINE_LOOP_BYTES
    return size * LOOP_BYTES if has_loop else size


def is_true_at_once(execution: Execution, condition: Condition, scope: Outputs) -> bool | None:
    """As `is_true`, with the cost of decoding and compiling counted first."""
    cost = 0
    if not condition.inline_bytes:
        return None
    if not condition.is_compiled:
        cost += COMPILED_BYTES * len(condition.program)
    for name in condition.references:
        with suppress(Missing):  # it may have a fallback
            cost += len(scope.raw(name))
    if condition.uses_input:
        cost += len(execution.record.input)
    if cost > execution.inline_bytes:
        return None
    execution.inline_bytes -= cost
    return is_true(execution, condition, scope)


def condition_preparation(
    execution: Execution, address: str, condition: Condition, scope: Outputs
) -> Preparation:
    """A preparation that only decides a condition."""
    values: dict[str, bytes] = {}
    missing: dict[str, str] = {}
    if condition.uses_input:
        values[INPUT] = execution.record.input
    keys = scope.keys(condition.references)
    for name in condition.references:
        try:
            values[keys.get(name, name)] = scope.raw(name)
        except Missing as error:
            missing[name] = str(error)
    return Preparation(
        address,
        "",
        is_data=False,
        condition=condition,
        config=None,
        overrides={},
        aliases={name: dict(scope.aliases(name)) for name in condition.references},
        execution=dict(scope.execution),
        missing=missing,
        values=values,
        outcomes={name: dict(scope.outcome(name)) for name in condition.outcomes_of},
        ending=dict(scope.ending),
        keys=keys,
    )
