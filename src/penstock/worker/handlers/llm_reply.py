"""What came of a chat completion: an output, or what is wrong with the reply.

What is wrong is said in words that the model understands too, because they are sent to it.
Nothing here touches the network: a large answer is read in the sandbox.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from penstock.definition.schema import cheap_schema, lines_of, schema_problems
from penstock.worker.handlers.http_exchange import Response

EXCERPT_CHARACTERS = 2000
PROBLEMS_SHOWN = 5
"""The model is told several at once: it may have only one more try."""
USAGE_DEPTH_MAX = 3
CUT_OFF = "length"
"""The finish reason of a reply that reached the limit on its length."""


class Expected(msgspec.Struct, frozen=True):
    """What a reply has to be. Schemas are JSON text, so that validators can be cached by it."""

    schema: bytes | None = None
    tools: Mapping[str, bytes | None] = {}
    """The schema of the arguments, by the name of the tool."""

    @property
    def schemas(self) -> list[bytes]:
        return [schema for schema in (self.schema, *self.tools.values()) if schema is not None]

    def is_checked_fast(self, body: bytes) -> bool:
        """Whether a reply can be checked on the worker's loop."""
        for schema in self.schemas:
            compiled = cheap_schema(msgspec.Raw(schema))
            if compiled is None or not compiled.is_cheap(body):
                return False
        return True


class ToolCall(msgspec.Struct, frozen=True):
    id: str
    name: str
    arguments: Any
    """Text, as it was received."""

    def in_message(self) -> dict[str, Any]:
        """The call as the protocol has it in a message."""
        text = self.arguments
        if not isinstance(text, str):
            text = msgspec.json.encode(text).decode()
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": text},
        }


class Reply(msgspec.Struct):
    """What came of a response."""

    usage: dict[str, Any]
    """The tokens of this call and of those before it."""
    output: Any = None
    problem: str = ""
    """Why there is no output."""
    detail: Any = None
    follow_up: list[dict[str, Any]] = []
    """The messages that tell the model about the problem; empty if asking again can't help."""


class WrongReply(ValueError):
    """The model's reply isn't what it should be; the text says why."""


def run(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The sandbox job that reads a large answer."""
    model, expected, spent = msgspec.msgpack.decode(
        parts[0], type=tuple[str, Expected, dict[str, Any]]
    )
    reply = read_reply(Response.from_parts(parts[1:]), expected, model, spent)
    output = b"" if reply.problem else msgspec.json.encode(reply.output)
    reply.output = None
    yield msgspec.msgpack.encode((reply, output))


def read_reply(
    response: Response, expected: Expected, model: str, spent: Mapping[str, Any]
) -> Reply:
    """`spent` has the tokens of earlier calls."""
    try:
        answer = msgspec.json.decode(response.body)
        choice = answer["choices"][0]
        message = choice["message"]
        text = _text(message.get("content"))
        calls = _tool_calls(message.get("tool_calls"))
        usage = add_usage(spent, answer.get("usage"))
        finish_reason = choice.get("finish_reason")
        answered_by = answer.get("model") or model
    except (msgspec.MsgspecError, RecursionError, LookupError, TypeError, AttributeError):
        detail = {"url": response.url, "body": response.text[:EXCERPT_CHARACTERS]}
        return Reply(dict(spent), problem="the answer isn't a chat completion", detail=detail)

    parsed = None
    tool_calls, problems = _checked_calls(calls, expected)
    reply = Reply(usage)
    if problems:
        reply.problem = next(iter(problems.values()))
        reply.detail = {"tool_calls": [call.in_message() for call in calls]}
        reply.follow_up = _about_calls(text, calls, problems)
    elif expected.schema is not None and not calls:
        try:
            parsed = checked(text, expected.schema, "the reply", "response_schema")
        except WrongReply as error:
            reply.problem = str(error)
            reply.detail = {"response": text[:EXCERPT_CHARACTERS]}
            reply.follow_up = _about_text(text, reply.problem, expected.schema)

    if reply.problem:
        _note_end(reply, message, finish_reason)
        return reply
    reply.output = {
        "response": text,
        "model": answered_by,
        "usage": usage,
        "finish_reason": finish_reason,
        "parsed": parsed,
        "tool_calls": tool_calls,
    }
    return reply


def _note_end(reply: Reply, message: Mapping[str, Any], finish_reason: Any) -> None:
    """Say so if the reply was refused or cut off. Then another one would be no better."""
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        reply.problem = f"the model refused: {refusal[:EXCERPT_CHARACTERS]}"
        reply.follow_up = []
    elif finish_reason == CUT_OFF:
        reply.problem += " (it was cut off: finish_reason is 'length'; raise max_tokens)"
        reply.follow_up = []


def _text(content: Any) -> str:
    """The text of a reply.

    Most endpoints answer with text, some with a list of parts, and a refusal has none.
    """
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def _tool_calls(items: Any) -> list[ToolCall]:
    """Raises `LookupError`, `TypeError` or `AttributeError` for what aren't tool calls."""
    calls = []
    for number, item in enumerate(items or [], 1):
        function = item["function"]
        call_id = item.get("id")
        if not isinstance(call_id, str) or not call_id:  # small servers have none
            call_id = f"call_{number}"
        calls.append(ToolCall(call_id, str(function["name"]), function.get("arguments") or "{}"))
    return calls


def _checked_calls(
    calls: Sequence[ToolCall], expected: Expected
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The calls with their arguments as values, and what is wrong with them by id."""
    checked_calls: list[dict[str, Any]] = []
    problems: dict[str, str] = {}
    for call in calls:
        try:
            arguments = _arguments(call, expected)
        except WrongReply as error:
            problems[call.id] = str(error)
        else:
            checked_calls.append({"id": call.id, "name": call.name, "arguments": arguments})
    return checked_calls, problems


def _arguments(call: ToolCall, expected: Expected) -> dict[str, Any]:
    if expected.tools and call.name not in expected.tools:
        names = ", ".join(expected.tools)
        raise WrongReply(f"there is no tool {call.name[:80]!r} (known: {names})")
    subject = f"the call of {call.name[:80]}"
    text = call.arguments
    if not isinstance(text, str):  # some servers have parsed them already
        text = msgspec.json.encode(text).decode()
    arguments = checked(text, expected.tools.get(call.name), subject, "the tool's parameters")
    if not isinstance(arguments, dict):
        raise WrongReply(f"{subject} must have an object as arguments")
    return arguments


def checked(text: str, schema: bytes | None, subject: str, schema_name: str) -> Any:
    """The value of a JSON text that fits the schema. Raises `WrongReply`."""
    try:
        value = msgspec.json.decode(_unfenced(text))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WrongReply(f"{subject} isn't JSON: {error}") from None
    if schema is not None:
        lines = lines_of(schema_problems(msgspec.json.decode(schema), value)[:PROBLEMS_SHOWN])
        if lines:
            raise WrongReply(f"{subject} doesn't fit {schema_name}: {'; '.join(lines)}")
    return value


def _unfenced(text: str) -> str:
    """The text without a Markdown code block around it, in which models like to wrap JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        return text[3:-3].removeprefix("json").strip()
    return text


def _about_text(text: str, problem: str, schema: bytes) -> list[dict[str, Any]]:
    """The reply and what is wrong with it.

    The schema is repeated, for servers that ignore `response_format`.
    """
    wanted = f"Reply with nothing but JSON that fits this JSON Schema: {schema.decode()}"
    request = {"role": "user", "content": f"This can't be used: {problem}. {wanted}"}
    if not text:  # many servers refuse a message without content
        return [request]
    return [{"role": "assistant", "content": text}, request]


def _about_calls(
    text: str, calls: Sequence[ToolCall], problems: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The reply and an answer to each of its calls: the protocol wants one for every call."""
    messages: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "content": text or None,
            "tool_calls": [call.in_message() for call in calls],
        }
    ]
    for call in calls:
        problem = problems.get(call.id)
        content = "Not carried out, because another call can't be. Repeat it with the others."
        if problem is not None:
            content = f"This call can't be carried out: {problem}. Call again."
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    return messages


def add_usage(spent: Mapping[str, Any], usage: Any, depth: int = 0) -> dict[str, Any]:
    """The sums of two reports of tokens, which may have further ones inside."""
    total = dict(spent)
    if not isinstance(usage, Mapping):
        return total
    for name, value in usage.items():
        before = total.get(name)
        if isinstance(value, Mapping) and depth < USAGE_DEPTH_MAX:
            earlier = before if isinstance(before, Mapping) else {}
            total[name] = add_usage(earlier, value, depth + 1)
        elif _is_count(value) and _is_count(before):
            total[name] = before + value
        elif value is not None or name not in total:
            total[name] = value
    return total


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
