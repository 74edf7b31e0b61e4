"""The tokens of language models that an execution has used, as its nodes report them.

This is the only place that adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock.definition.model import BUILT_IN_HANDLERS
from penstock.definition.plan import Plan
from penstock.engine.commands import NodeRun
from penstock.engine.reasons import Reason

LLM_HANDLER = "llm_service"
PROMPT_NAMES = ("prompt_tokens", "input_tokens")
COMPLETION_NAMES = ("completion_tokens", "output_tokens")


class Tokens(msgspec.Struct, kw_only=True):
    prompt: Annotated[int, Meta(description="What the models have read.")]
    completion: Annotated[int, Meta(description="What they have written.")]
    total: int


class _Output(msgspec.Struct):
    """What of an output matters here; the rest isn't decoded."""

    usage: Any = None


def tokens_of(
    runs: Mapping[str, NodeRun],
    outputs: Mapping[str, bytes],
    plan: Plan,
) -> Tokens | None:
    """The sum over all nodes; None if no node reports any.

    Of the built-in handlers only `llm_service` counts: others only pass on what they were given.
    Reused outputs don't count: an earlier execution has paid for them. Failed attempts do.
    """
    handlers = {node.node_id: node.handler for node in plan.nodes}
    tokens: Tokens | None = None
    for node_id, handler in handlers.items():
        if handler != LLM_HANDLER and handler in BUILT_IN_HANDLERS:
            continue
        run = runs.get(node_id)
        if run is None or run.reason == Reason.REUSED:
            continue
        for usage in _reports(run, outputs.get(node_id)):
            reported = _tokens_in(usage)
            if reported is not None:
                tokens = reported if tokens is None else _sum(tokens, reported)
    return tokens


def _reports(run: NodeRun, output: bytes | None) -> Iterator[Any]:
    for failure in run.failures:
        detail = failure.error.detail
        if isinstance(detail, Mapping):
            yield detail.get("usage")
    if output is not None and b'"usage"' in output:
        try:
            yield msgspec.json.decode(output, type=_Output).usage
        except (msgspec.ValidationError, RecursionError):  # it isn't an object
            return


def _tokens_in(usage: Any) -> Tokens | None:
    if not isinstance(usage, Mapping):
        return None
    prompt = _count(usage, PROMPT_NAMES)
    completion = _count(usage, COMPLETION_NAMES)
    total = _count(usage, ("total_tokens",))
    if prompt is None and completion is None and total is None:
        return None
    prompt = prompt or 0
    completion = completion or 0
    return Tokens(prompt=prompt, completion=completion, total=total or prompt + completion)


def _count(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """The first of the names that has a number."""
    for name in names:
        value = usage.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if math.isfinite(value):
            return int(value)
    return None


def _sum(first: Tokens, second: Tokens) -> Tokens:
    return Tokens(
        prompt=first.prompt + second.prompt,
        completion=first.completion + second.completion,
        total=first.total + second.total,
    )
