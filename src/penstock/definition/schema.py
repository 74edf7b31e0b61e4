"""JSON Schema for inputs: no remote references, regular expressions in linear time."""

from __future__ import annotations

from typing import Any, NoReturn

from penstock.definition.problems import Problem

MOST_PROBLEMS = 20


def compile_schema(schema: Any) -> Any:
    """A validator. Raises `ValueError` with a text for the user."""
    import jsonschema_rs  # noqa: PLC0415 -- only workflows with a schema pay for it

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError as error:
        raise ValueError(str(error).split("\n", maxsplit=1)[0].rpartition("ValueError: ")[2]) from None


def schema_problems(schema: Any, value: Any) -> list[Problem]:
    """What doesn't fit, and where: `address.city`, empty for the value itself."""
    errors = compile_schema(schema).iter_errors(value)
    return [
        Problem("invalid_input", ".".join(str(key) for key in error.instance_path), error.message)
        for _, error in zip(range(MOST_PROBLEMS), errors, strict=False)
    ]


def schema_errors(schema: Any, value: Any) -> list[str]:
    """The same, a line each."""
    return [f"{it.path}: {it.message}" if it.path else it.message for it in schema_problems(schema, value)]


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"a schema may not refer to another place ({uri}); put it under $defs")
