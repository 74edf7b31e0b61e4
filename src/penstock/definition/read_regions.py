"""The fields of maps and loops: `for_each` and `repeat`, each checked on its own."""

from __future__ import annotations

import re
from typing import Any

from penstock.definition.document_fields import (
    ID_CHARACTERS_MAX,
    MULTIPLIER_MAX,
    PARALLEL_MAX,
    PERCENT,
    REPEAT_FIELDS,
    ROUNDS_MAX,
)
from penstock.definition.fields import Reader, excerpt_of
from penstock.definition.model import (
    ITEM_FAILURE_POLICIES,
    REGION_OUTPUTS,
    Each,
    ItemFailurePolicy,
    Repeat,
)

ITEM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
RESERVED_NAMES = frozenset(
    {"execution", "input", "nodes", "params", "previous", "round", "secrets", "true", "false"}
    | {"null", "in"}
)
"""Names that mean something else in a reference or a condition."""
MAP_FIELDS = (
    "as",
    "key",
    "max_parallel",
    "on_item_failure",
    "max_failures",
    "output",
    "item_timeout_seconds",
    "collect",
)
"""Fields that have no effect without `for_each`."""


def read_each(reader: Reader) -> Each | None:
    """The map that a node is; None if it is none."""
    source = reader.raw.get("for_each")
    if source is None:
        _refuse_fields_of_maps(reader)
        return None
    if not isinstance(source, (str, list)):
        problem = f"must be one reference to a list, or a list, not {excerpt_of(source)}"
        _bad_for_each(reader, problem)
        source = []  # the rest is looked at as a map's

    name = reader.text("as", max_length=ID_CHARACTERS_MAX)
    if name is not None and (not ITEM_NAME.match(name) or name in RESERVED_NAMES):
        reader.bad("as", f"must be a plain name, such as page, not {excerpt_of(name)}")
        name = None
    each = Each(source)
    if name is not None:
        each.item_name = name
        each.written_name = name
        each.index_name = f"{name}_index"
    each.key = reader.text("key", limit_controls=False)
    each.max_parallel = _whole(reader, "max_parallel", PARALLEL_MAX) or each.max_parallel
    each.on_item_failure = _policy(reader)
    each.max_failures, each.max_failures_percent = _max_failures(reader)
    each.collect = reader.raw.get("collect")
    each.output = reader.choice("output", REGION_OUTPUTS) or "list"
    each.item_timeout_seconds = reader.seconds("item_timeout_seconds")
    return each


def _bad_for_each(reader: Reader, problem: str) -> None:
    reader.problems.error(
        "bad_for_each", reader.path_of("for_each"), f'"for_each" {problem}', reader.node_id
    )


def _refuse_fields_of_maps(reader: Reader) -> None:
    for name in MAP_FIELDS:
        if reader.raw.get(name) is not None:
            reader.ignored_without(name, "for_each")


def _policy(reader: Reader) -> ItemFailurePolicy:
    if reader.raw.get("on_item_failure") == "fail":
        return "fail_fast"
    return reader.choice("on_item_failure", ITEM_FAILURE_POLICIES) or "fail_fast"


def _max_failures(reader: Reader) -> tuple[float | None, float | None]:
    """The number of items that may fail, or the percentage."""
    value = reader.raw.get("max_failures")
    if isinstance(value, str):
        if re.match(PERCENT, value) and float(value[:-1]) <= 100:  # noqa: PLR2004 -- per cent
            return None, float(value[:-1])
        reader.bad("max_failures", f'must be a number or "5%", not {excerpt_of(value)}')
        return None, None
    return reader.number("max_failures", minimum=0), None


def _whole(reader: Reader, name: str, maximum: int) -> int | None:
    if reader.raw.get(name) is None:
        return None
    return reader.integer(name, minimum=1, maximum=maximum)


def read_repeat(reader: Reader) -> Repeat | None:
    """The loop that a node is; None if it is none."""
    raw = reader.raw.get("repeat")
    if raw is None:
        return None
    inner = Reader(raw, reader.path_of("repeat"), reader.problems, reader.node_id)
    if not isinstance(raw, dict):
        return Repeat("true", 1)
    inner.unknown(REPEAT_FIELDS)
    until = inner.raw.get("until")
    if isinstance(until, bool):
        until = "true" if until else "false"
    if not isinstance(until, str) or not until.strip():
        message = '"until" must be a condition, such as "job.data.state == \'done\'"'
        reader.problems.error("bad_until", inner.path_of("until"), message, reader.node_id)
        until = "true"
    if inner.raw.get("max_rounds") is None:
        message = '"repeat" needs "max_rounds": how many rounds there may be'
        reader.problems.error("repeat_without_limit", inner.path, message, reader.node_id)

    repeat = Repeat(until, _whole(inner, "max_rounds", ROUNDS_MAX) or 1)
    repeat.every_seconds = inner.number("every_seconds", minimum=0) or 0.0
    repeat.multiplier = inner.number("multiplier", minimum=1, maximum=MULTIPLIER_MAX) or 1.0
    repeat.most_every_seconds = inner.number("most_every_seconds", minimum=0)
    for name in ("multiplier", "most_every_seconds"):
        if inner.raw.get(name) is not None and not repeat.every_seconds:
            inner.ignored_without(name, "every_seconds")
    repeat.has_initial = "initial" in inner.raw
    repeat.initial = inner.raw.get("initial")
    repeat.carry = inner.raw.get("carry")
    repeat.keep_rounds = _whole(inner, "keep_rounds", ROUNDS_MAX) or repeat.keep_rounds
    repeat.on_exhausted = inner.choice("on_exhausted", ("fail", "continue")) or "fail"
    repeat.on_round_failure = inner.choice("on_round_failure", ("fail", "continue")) or "fail"
    return repeat


def has_body(raw: dict[str, Any]) -> bool:
    return raw.get("for_each") is not None or raw.get("repeat") is not None
