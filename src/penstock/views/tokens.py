"""The tokens of language models that an execution has used, as its nodes report them.

This is the only place that adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock.definition.addresses import node_at
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
    """The sum over all nodes, also inside of maps and loops; None if no node reports any.

    Of the built-in handlers only `llm_service` counts: others only pass on what they were given,
    and so do maps and loops. Reused outputs don't count: an earlier execution has paid for them.
    Failed attempts do.
    """
    tokens: Tokens | None = None
    for run in runs.values():
        if run.reason == Reason.REUSED or not _may_report(run, outputs):
            continue
        node = node_at(plan, run.node_id)
        if node is None or node.region is not None:
            continue
        if node.handler != LLM_HANDLER and node.handler in BUILT_IN_HANDLERS:
            continue
        for usage in _reports(run, outputs.get(run.node_id)):
            reported = _tokens_in(usage)
            if reported is not None:
                tokens = reported if tokens is None else _sum(tokens, reported)
    return tokens


def reports_tokens(output: bytes) -> bool:
    """Whether an output may report tokens."""
    return b'"usage"' in output


def _may_report(run: NodeRun, outputs: Mapping[str, bytes]) -> bool:
    return bool(run.failures) or reports_tokens(outputs.get(run.node_id, b""))


def _reports(run: NodeRun, output: bytes | None) -> Iterator[Any]:
    for failure in run.failures:
        detail = failure.error.detail
        if isinstance(detail, Mapping):
            yield detail.get("usage")
    if output is not None and reports_tokens(output):
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
