"""JSON Schema for inputs: no remote references, regular expressions in linear time."""

from __future__ import annotations

from typing import Any, NoReturn


def compile_schema(schema: Any) -> Any:
    """A validator. Raises `ValueError` with a text for the user."""
    import jsonschema_rs  # noqa: PLC0415 -- only workflows with a schema pay for it

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError as error:
        raise ValueError(str(error).split("\n", maxsplit=1)[0].rpartition("ValueError: ")[2]) from None


def schema_errors(schema: Any, value: Any) -> list[str]:
    """What doesn't fit, a line each, with the place."""
    errors = compile_schema(schema).iter_errors(value)
    return [f"{_place(error.instance_path)}{error.message}" for _, error in zip(range(20), errors, strict=False)]


def _place(path: Any) -> str:
    place = ".".join(str(key) for key in path)
    return f"{place}: " if place else ""


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"a schema may not refer to another place ({uri}); put it under $defs")
