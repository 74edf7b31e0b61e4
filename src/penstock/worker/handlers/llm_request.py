"""What the config of an `llm_service` asks for, and the body of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.definition.handler_configs import HANDLER_CONFIGS, config_keys
from penstock.definition.llm_messages import function_name
from penstock.definition.problems import path_to
from penstock.definition.value_faults import is_never_unknown
from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal
from penstock.worker.context import Context
from penstock.worker.handlers.http import bad_config, check_keys
from penstock.worker.handlers.llm_reply import Expected, ToolCall

SHAPE = HANDLER_CONFIGS["llm_service"]
KEYS = config_keys("llm_service")
TOOL_CHOICES = ("auto", "none", "required")
REPAIRS = 1
IMAGE_BYTES_MAX = 20 * 1024 * 1024
"""An image in a message. What OpenAI takes; other providers take less."""
REQUEST_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """What a config asks for."""

    messages: list[dict[str, Any]]
    model: str | None
    provider: str | None
    options: dict[str, Any]
    extra: dict[str, Any]
    expected: Expected
    repairs: int


def read_config(config: Mapping[str, Any], ctx: Context) -> Call:
    check_keys(config, KEYS, ctx, SHAPE.hint)
    if (config.get("prompt") is None) == (config.get("messages") is None):
        raise bad_config("give either prompt or messages")
    for key in SHAPE.keys:
        value = config.get(key.name)
        if value is not None:
            for path, message in key.faults(value, is_never_unknown):
                where = f"{path_to('', (key.name, *path))}: " if path else ""
                raise bad_config(f"{where}{message}")

    schema = config.get("response_schema")
    tools = config.get("tools") or []
    return Call(
        messages=_messages(config),
        model=config.get("model") or None,
        provider=config.get("provider") or None,
        options=_options(config, tools),
        extra=dict(config.get("extra") or {}),
        expected=Expected(
            None if schema is None else msgspec.json.encode(schema), _parameters(tools)
        ),
        repairs=REPAIRS if config.get("repairs") is None else int(config["repairs"]),
    )


def request_body(call: Call, model: str, messages: Sequence[dict[str, Any]]) -> bytes:
    payload: dict[str, Any] = {"model": model, "messages": messages, **call.options}
    if call.expected.schema is not None:
        json_schema = {"name": "response", "schema": msgspec.Raw(call.expected.schema)}
        payload["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    payload |= call.extra
    sent = {name: value for name, value in payload.items() if value is not None}
    body = msgspec.json.encode(sent)
    if len(body) > REQUEST_BYTES_MAX:
        raise _too_large(f"the request has {len(body):,} bytes; the limit is {REQUEST_BYTES_MAX:,}")
    return body


def _options(config: Mapping[str, Any], tools: list[Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name in ("temperature", "max_tokens"):
        if config.get(name) is not None:
            options[name] = config[name]
    if not tools:  # many servers refuse an empty list
        return options

    options["tools"] = tools
    choice = config.get("tool_choice")
    if isinstance(choice, str) and choice not in TOOL_CHOICES:
        names = [function_name(tool) for tool in tools]
        if choice not in names:
            allowed = ", ".join((*TOOL_CHOICES, *names))
            raise bad_config(f"tool_choice is {choice[:80]!r}; allowed: {allowed}")
        choice = {"type": "function", "function": {"name": choice}}
    if choice is not None:
        options["tool_choice"] = choice
    return options


def _parameters(tools: list[Any]) -> dict[str, bytes | None]:
    """The schemas of the arguments, by the names of the tools."""
    schemas: dict[str, bytes | None] = {}
    for tool in tools:
        parameters = tool["function"].get("parameters")
        schema = None if parameters is None else msgspec.json.encode(parameters)
        schemas[function_name(tool)] = schema
    return schemas


def _messages(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    if config.get("messages") is None:
        messages = [{"role": "user", "content": as_text(config["prompt"])}]
    else:
        messages = [_message(message, i) for i, message in enumerate(config["messages"])]
    system = config.get("system")
    return [{"role": "system", "content": system}, *messages] if system else messages


def _message(message: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A message as the protocol has it, from one that may have the spellings of our outputs."""
    plain = dict(message)
    content = message.get("content")
    if isinstance(content, list) and message["role"] != "tool":
        content = [
            _part(part, f"messages[{number}].content[{i}]") for i, part in enumerate(content)
        ]
    elif content is not None or message["role"] == "tool":
        content = as_text(content)
    plain["content"] = content

    calls = plain.pop("tool_calls", None)
    if calls:  # empty in the output of a reply that called nothing
        plain["tool_calls"] = [
            _tool_call(call, f"messages[{number}].tool_calls[{i}]") for i, call in enumerate(calls)
        ]
    return plain


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _tool_call(call: Any, where: str) -> dict[str, Any]:
    """A call as the protocol has it, or as an output of `llm_service` has it."""
    if isinstance(call, Mapping) and "function" in call:
        return dict(call)
    if not isinstance(call, Mapping) or not {"id", "name"} <= call.keys():
        raise bad_config(f"{where}: a tool call has id, name and arguments")
    return ToolCall(call["id"], call["name"], call.get("arguments") or {}).in_message()


def _part(part: dict[str, Any], where: str) -> dict[str, Any]:
    if part["type"] != "image_url":
        return part
    image = part["image_url"]
    if isinstance(image, str):
        image = {"url": image}
    size = _image_bytes(image["url"])
    if size > IMAGE_BYTES_MAX:
        raise _too_large(f"{where}: the image has {size:,} bytes; the limit is {IMAGE_BYTES_MAX:,}")
    return {**part, "image_url": image}


def _image_bytes(url: str) -> int:
    """The size of the image in a data URL, nearly; 0 for any other address."""
    if url[:5].lower() != "data:":
        return 0
    return (len(url) - url.find(",") - 1) * 3 // 4


def _too_large(message: str) -> Terminal:
    return Terminal(message, category=ErrorCategory.TOO_LARGE)
