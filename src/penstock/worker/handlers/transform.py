"""`transform`: `value` as it is, or a CEL `expression` over the parents' outputs and `variables`.

Also `input` with a `transform_type`; without a config, the result is the parents' outputs by id.

An expression that is provably cheap on the values that it names is evaluated at once; any other in
the sandbox, with limits on time and memory, because a short expression can compute for as long and
take as much memory as it likes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from penstock.definition.cel import INLINE_BYTES, evaluate_cel, inline_bytes, size_of, to_json
from penstock.definition.expression import EXPRESSION_CHARACTERS_MAX, MAPS, is_variable_name
from penstock.definition.handler_configs import TRANSFORM_TYPES, config_keys
from penstock.definition.template import Missing
from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal
from penstock.sandbox import Job, JobFailed, Overrun, Sandbox, call
from penstock.worker.context import Context
from penstock.worker.handlers.http import bad_config, check_keys

QUOTED_CHARACTERS_MAX = 200
FUNCTION = "penstock.worker.handlers.transform:run"


class TransformHandler:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def __call__(self, config: dict[str, Any], ctx: Context) -> Any:
        check_keys(config, config_keys("transform"), ctx)
        sources = [name for name in ("value", "expression", "input") if name in config]
        if len(sources) > 1:
            raise bad_config("give only one of value, expression and input")
        if "transform_type" in config and sources != ["input"]:
            raise bad_config("transform_type needs input")

        if not sources:
            parents = {name: msgspec.Raw(text) for name, text in ctx.raw_inputs.items()}
            return msgspec.Raw(msgspec.json.encode({"result": parents}))
        if "value" in config:
            return {"result": config["value"]}
        if "input" in config:
            return {"result": _transformed(config["input"], config.get("transform_type"))}
        return msgspec.Raw(await self._evaluate(config, ctx))

    async def _evaluate(self, config: dict[str, Any], ctx: Context) -> bytes:
        """The result of the config's expression, evaluated here if that is provably cheap."""
        expression, variables = _read_expression(config)
        named = _named(expression, ctx.raw_inputs)
        limit = inline_bytes(expression)
        if limit and sum(map(len, named.values())) <= INLINE_BYTES:
            values = _values(expression, named, variables)
            if size_of(values, limit) <= limit:
                return evaluated(expression, values, list(ctx.raw_inputs))
        return await self._evaluate_in_sandbox(expression, variables, named, ctx)

    async def _evaluate_in_sandbox(
        self, expression: str, variables: dict[str, Any], named: Mapping[str, bytes], ctx: Context
    ) -> bytes:
        about = _About(expression, list(named), list(ctx.raw_inputs))
        parts = [msgspec.msgpack.encode(about), msgspec.json.encode(variables), *named.values()]
        try:
            answer = await call(self._sandbox, Job(FUNCTION, parts, turn=ctx.workflow))
        except (Overrun, JobFailed) as error:
            message = f"the expression {_quoted(expression)} can't be evaluated: {error}"
            raise _failed(message) from None

        result = msgspec.msgpack.decode(answer, type=_Answer)
        if result.error is not None:
            raise _failed(result.error)
        return result.output

    async def close(self) -> None:
        await self._sandbox.close()


class _About(msgspec.Struct, array_like=True):
    expression: str
    names: list[str]
    """Names of the inputs, which follow as parts of their own."""
    parents: list[str]


class _Answer(msgspec.Struct, array_like=True):
    output: bytes = b""
    error: str | None = None


def run(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The sandbox job that evaluates the expression."""
    about = msgspec.msgpack.decode(parts[0], type=_About)
    named = dict(zip(about.names, parts[2:], strict=True))
    try:
        values = _values(about.expression, named, msgspec.json.decode(parts[1]))
        answer = _Answer(evaluated(about.expression, values, about.parents))
    except Terminal as error:
        answer = _Answer(error=str(error))
    yield msgspec.msgpack.encode(answer)


def _values(
    expression: str, named: Mapping[str, bytes], variables: Mapping[str, Any]
) -> dict[str, Any]:
    """The values that the expression can refer to; `named` are the parents that it mentions."""
    inputs = {name: msgspec.json.decode(text) for name, text in named.items()}
    values = {name: value for name, value in inputs.items() if is_variable_name(name)}
    for name in MAPS:
        if name in expression:
            values[name] = inputs
    values.update(variables)
    return values


def evaluated(expression: str, values: dict[str, Any], parents: Sequence[str]) -> bytes:
    """The node's output as JSON."""
    try:
        return msgspec.json.encode({"result": to_json(evaluate_cel(expression, values))})
    except Missing as error:
        raise _failed(str(error)) from None
    except (ValueError, RecursionError, OverflowError) as error:
        reason = _cleaned(str(error), parents)
        raise _failed(f"the expression {_quoted(expression)} can't be read: {reason}") from None


def _read_expression(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The expression of a config, and its variables."""
    expression = config["expression"]
    if not isinstance(expression, str):
        raise bad_config("expression must be text")
    if len(expression) > EXPRESSION_CHARACTERS_MAX:
        raise bad_config(
            f"the expression has {len(expression):,} characters; "
            f"the limit is {EXPRESSION_CHARACTERS_MAX:,}"
        )

    variables = config.get("variables", {})
    if not isinstance(variables, dict):
        raise bad_config('variables must be an object, such as {"limit": 3}')
    for name in variables:
        if not is_variable_name(name):
            raise bad_config(f"variables: {name[:80]!r} can't be the name of a variable")
    return expression, variables


def _named(expression: str, inputs: Mapping[str, bytes]) -> dict[str, bytes]:
    """The inputs that the expression may refer to.

    Others are left out, because decoding and converting a value takes as long as it is large.
    """
    if "inputs" in expression or "nodes" in expression:
        return dict(inputs)
    return {name: text for name, text in inputs.items() if name in expression}


def _transformed(value: Any, kind: Any) -> Any:
    """The value after a `transform_type`, which documents of the public implementations use."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    match kind:
        case None | "none" | "identity":
            return value
        case "uppercase":
            return text.upper()
        case "lowercase":
            return text.lower()
        case "json_stringify":
            return msgspec.json.encode(value).decode()
        case "json_parse":
            try:
                return msgspec.json.decode(text)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise _failed(f"the input isn't JSON: {error}") from None
    allowed = ", ".join(TRANSFORM_TYPES)
    raise bad_config(f"transform_type is {str(kind)[:80]!r}; allowed: {allowed}")


def _failed(message: str) -> Terminal:
    return Terminal(message, category=ErrorCategory.EXPRESSION)


def _quoted(expression: str) -> str:
    if len(expression) > QUOTED_CHARACTERS_MAX:
        expression = expression[: QUOTED_CHARACTERS_MAX - 1] + "…"
    return repr(expression)


def _cleaned(reason: str, parents: Sequence[str]) -> str:
    """CEL's message alone.

    CEL puts a code and a position before it, a code behind it, and draws an arrow below it.
    """
    if unknown := re.search(r"undeclared reference to '([^']+)'", reason):
        names = ", ".join(parents) or "none"
        return f"'{unknown[1]}' is unknown (parents of this node: {names})"[:300]
    first = re.sub(r"^([A-Z_]+: )?(ERROR: <input>:-?\d+:-?\d+: )?", "", reason.partition("\n")[0])
    return re.sub(r" \[[A-Z_]+\]$", "", first)[:300]
