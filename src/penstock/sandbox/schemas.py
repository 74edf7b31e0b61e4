"""Checks against a JSON Schema: at once if that is cheap for certain, in a child process if not."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.definition.problems import Problem
from penstock.definition.schema import FUNCTION, cheap_problems
from penstock.sandbox.frames import Job, Overrun, Sandbox, call


async def schema_problems_in(
    sandbox: Sandbox, schema: Any, value: Any, turn: str = ""
) -> list[Problem]:
    """As `schema_problems`: what doesn't fit.

    A value that takes too long to be checked doesn't fit either.
    """
    problems = cheap_problems(schema, value)
    if problems is not None:
        return problems
    job = Job(FUNCTION, [msgspec.json.encode(schema), msgspec.json.encode(value)], turn=turn)
    try:
        return msgspec.msgpack.decode(await call(sandbox, job), type=list[Problem])
    except Overrun as error:
        return [Problem("invalid_input", "", f"it can't be checked against its schema: {error}")]
