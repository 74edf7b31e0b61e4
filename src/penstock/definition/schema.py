"""JSON Schema for inputs and replies, without remote references.

There is a limit to the work that a schema can make. A check that is cheap for certain is made at
once (`cheap_problems`). Any other is a job for the sandbox (`run`), because the validator holds the
interpreter's lock until it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NoReturn

import msgspec

from penstock.definition.problems import Problem, path_to
from penstock.definition.schema_cost import SchemaCost, cost_of

PROBLEMS_MAX = 20
MESSAGE_CHARACTERS_MAX = 300
"""Characters: a message quotes the value that doesn't fit, which may be all of it."""
CHECK_SECONDS_MAX = 0.2
"""How long a check may take at worst, by estimate.

Checks hold the loop and the interpreter's lock.
"""
LISTED_MAX = 1000
"""A value with so many checks or fewer is told every mistake, a larger one the first."""
EXPLAINED_BYTES_MAX = 16_000_000
"""An error has a copy of the value for each alternative that it doesn't fit: for more than this,
none is made.
"""
TYPES = "string, number, integer, boolean, object, array or null"
FUNCTION = "penstock.definition.schema:run"
CHEAP_SCHEMA_BYTES = 8 * 1024
CHEAP_STATES = 1000
CHEAP_VALUE_BYTES = 64 * 1024
CHEAP_SECONDS = 0.005
"""What may be checked at once, on a loop that others wait for."""
CACHED_SCHEMAS_MAX = 128
UNUSABLE = "the schema can't be used: "
PATTERN_BYTES_MAX = 8 * 1024 * 1024
PATTERN_CACHE_BYTES_MAX = 1024 * 1024


class Mismatch(msgspec.Struct, frozen=True):
    """Where a value doesn't fit a schema, and why."""

    path: tuple[str | int, ...]
    message: str


class Schema:
    """A schema, compiled."""

    __slots__ = ("_cost", "_validator")

    def __init__(self, validator: Any, cost: SchemaCost) -> None:
        self._validator = validator
        self._cost = cost

    def is_valid(self, value: Any) -> bool:
        """However long it takes: for schemas of our own."""
        return bool(self._validator.is_valid(value))

    def mismatches(self, value: Any) -> list[Mismatch]:
        """What doesn't fit. A value that would take too long to be checked doesn't fit either."""
        text = msgspec.json.encode(value)
        if self._cost.seconds(_count_values(text), len(text)) > CHECK_SECONDS_MAX:
            message = (
                f"it is too large to be checked against its schema ({len(text):,} bytes);"
                " send less, or use fewer alternatives and smaller patterns in the schema"
            )
            return [Mismatch((), message)]
        return [] if self._validator.is_valid(value) else self.explain(value)

    def is_cheap(self, text: bytes) -> bool:
        """Whether a value with this JSON is checked in a few milliseconds."""
        seconds = self._cost.seconds(_count_values(text), len(text))
        return len(text) <= CHEAP_VALUE_BYTES and seconds <= CHEAP_SECONDS

    def explain(self, value: Any) -> list[Mismatch]:
        """What doesn't fit: of a small value all, up to a limit; of a large one the first."""
        text = msgspec.json.encode(value)
        if self._cost.checks * len(text) > EXPLAINED_BYTES_MAX:
            return [Mismatch((), "it doesn't fit its schema, and is too large to say where")]
        if self._cost.checks * _count_values(text) > LISTED_MAX:
            return [_mismatch(error) for error in self._first_error(value)]
        errors = self._validator.iter_errors(value)
        return [_mismatch(error) for error in islice(errors, PROBLEMS_MAX)]

    def _first_error(self, value: Any) -> Iterator[Any]:
        import jsonschema_rs  # noqa: PLC0415 -- as below

        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error


def _count_values(text: bytes) -> int:
    """At most: some commas and brackets may stand inside texts."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")


def _mismatch(error: Any) -> Mismatch:
    message: str = error.message
    if len(message) > MESSAGE_CHARACTERS_MAX:
        # the reason stands behind the value that is quoted
        half = MESSAGE_CHARACTERS_MAX // 2
        message = f"{message[:half]} … {message[-half:]}"
    return Mismatch(tuple(error.instance_path), message)


def compile_schema(schema: Any) -> Schema:
    """Raises `ValueError` with a text for the user."""
    import jsonschema_rs  # noqa: PLC0415 -- only workflows with a schema pay for it

    cost = cost_of(schema)
    options = jsonschema_rs.RegexOptions(
        size_limit=PATTERN_BYTES_MAX, dfa_size_limit=PATTERN_CACHE_BYTES_MAX
    )
    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_refuse, pattern_options=options)
    except ValueError as error:
        first_line = str(error).split("\n", maxsplit=1)[0]
        reason = first_line.rpartition("ValueError: ")[2]
        steps = getattr(error, "instance_path", None)
        if steps and steps[-1] == "type" and "anyOf" in reason:
            reason = f"{reason.partition(' is not valid')[0]} isn't a type; use {TYPES}"
        if steps:
            reason = f"{path_to('', steps)}: {reason}"
        raise ValueError(reason[:MESSAGE_CHARACTERS_MAX]) from None
    return Schema(validator, cost)


def cheap_schema(schema: Any) -> Schema | None:
    """The schema, compiled and kept, if that is cheap; None if the sandbox has to do it.

    Raises `ValueError`.
    """
    encoded = msgspec.json.encode(schema)
    return _cached_schema(encoded) if len(encoded) <= CHEAP_SCHEMA_BYTES else None


@lru_cache(maxsize=CACHED_SCHEMAS_MAX)
def _cached_schema(encoded: bytes) -> Schema | None:
    schema = msgspec.json.decode(encoded)
    return None if cost_of(schema).states > CHEAP_STATES else compile_schema(schema)


def cheap_problems(schema: Any, value: Any) -> list[Problem] | None:
    """As `schema_problems`; None if the check may take long, so that `run` has to make it."""
    try:
        compiled = cheap_schema(schema)
    except ValueError as error:
        return [_unusable(error)]
    if compiled is None or not compiled.is_cheap(msgspec.json.encode(value)):
        return None
    return _problems(compiled, value)


def run(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The job of the sandbox: a schema and a value, both as JSON.

    The answer has what doesn't fit.
    """
    schema, value = (msgspec.json.decode(part) for part in parts)
    yield msgspec.msgpack.encode(schema_problems(schema, value))


def schema_problems(schema: Any, value: Any) -> list[Problem]:
    """What doesn't fit, and where: `address.city`, empty for the value itself."""
    try:
        return _problems(cheap_schema(schema) or compile_schema(schema), value)
    except ValueError as error:  # accepted by an older version
        return [_unusable(error)]


def _problems(schema: Schema, value: Any) -> list[Problem]:
    problems: list[Problem] = []
    for mismatch in schema.mismatches(value):
        path = ".".join(str(key)[:100] for key in mismatch.path)
        problems.append(Problem("invalid_input", path, mismatch.message))
    return problems


def _unusable(error: ValueError) -> Problem:
    return Problem("bad_schema", "", f"{UNUSABLE}{error}")


def lines_of(problems: Sequence[Problem]) -> list[str]:
    """The problems, a line each."""
    return [
        f"{problem.path}: {problem.message}" if problem.path else problem.message
        for problem in problems
    ]


def schema_errors(schema: Any, value: Any) -> list[str]:
    """What doesn't fit, a line each."""
    return lines_of(schema_problems(schema, value))


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"a schema may not refer to another place ({uri}); put it under $defs")
