"""Messages and tools of `llm_service`: what is wrong with them.

They have the form of OpenAI's protocol, and a few shorter spellings. A document is checked with
references in them, of which nothing is known; the worker checks them again without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.definition.fields import excerpt_of, kind_of
from penstock.definition.value_faults import IsUnknown, ValueFault, schema_faults

IMAGE_URL = re.compile(r"https?://|data:image/[a-z0-9.+-]+;base64,", re.IGNORECASE)
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FUNCTION_FORM = '{"type": "function", "function": {"name": …, "parameters": …}}'


def message_faults(messages: list[Any], is_unknown: IsUnknown) -> Iterator[ValueFault]:
    if not messages:
        yield (), "is empty"
    for number, message in enumerate(messages):
        if not is_unknown(message):
            for path, text in _message_faults(message, is_unknown):
                yield (number, *path), text


def _message_faults(message: Any, is_unknown: IsUnknown) -> Iterator[ValueFault]:
    if not isinstance(message, Mapping):
        yield (), f"a message must be an object with role and content, not {kind_of(message)}"
        return
    role = message.get("role")
    if not isinstance(role, str) or not role:
        yield (), 'a message needs a "role": system, user, assistant or tool'
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list) and not is_unknown(calls):
        yield ("tool_calls",), f'"tool_calls" must be a list, not {kind_of(calls)}'
    if "content" not in message and calls is None:
        yield (), 'a message needs "content"'

    content = message.get("content")
    if isinstance(content, list) and role != "tool":
        for number, part in enumerate(content):
            if not is_unknown(part):
                for path, text in _part_faults(part, is_unknown):
                    yield ("content", number, *path), text


def _part_faults(part: Any, is_unknown: IsUnknown) -> Iterator[ValueFault]:
    """Parts of types that aren't known here, such as sound, are the provider's business."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        yield (), 'a part of a message must be an object with a "type", such as text or image_url'
    elif kind == "text" and not isinstance(part.get("text"), str):
        yield (), 'a part of type text needs "text"'
    elif kind == "image_url":
        image = part.get("image_url")
        path: tuple[str, ...] = ("image_url",)
        if isinstance(image, Mapping):
            image = image.get("url")
            path = ("image_url", "url")
        if not is_unknown(image) and not _is_image_url(image):
            allowed = "an http or https address, or data:image/…;base64,…"
            yield path, f"an image needs {allowed}, not {excerpt_of(image)}"


def _is_image_url(url: Any) -> bool:
    return isinstance(url, str) and IMAGE_URL.match(url) is not None


def tool_faults(tools: list[Any], is_unknown: IsUnknown) -> Iterator[ValueFault]:
    names: set[str] = set()
    for number, tool in enumerate(tools):
        if is_unknown(tool):
            continue
        if not isinstance(tool, Mapping) or tool.get("type") != "function":
            yield (number,), f"a tool has the form {FUNCTION_FORM}"
            continue
        for path, text in _function_faults(tool.get("function"), is_unknown):
            yield (number, *path), text
        name = function_name(tool)
        if name and name in names:
            yield (number, "function", "name"), f"two tools have the name {excerpt_of(name)}"
        names.add(name)


def _function_faults(function: Any, is_unknown: IsUnknown) -> Iterator[ValueFault]:
    if is_unknown(function):
        return
    if not isinstance(function, Mapping):
        yield (), f"a tool has the form {FUNCTION_FORM}"
        return
    name = function.get("name")
    is_literal = not is_unknown(name)
    if is_literal and not (isinstance(name, str) and TOOL_NAME.fullmatch(name)):
        allowed = "up to 64 letters, digits, _ and -"
        yield ("function", "name"), f'"name" of a tool must be {allowed}, not {excerpt_of(name)}'

    parameters = function.get("parameters")
    if parameters is None or is_unknown(parameters):
        return
    if not isinstance(parameters, Mapping):
        text = f'"parameters" must be a JSON Schema, an object, not {kind_of(parameters)}'
        yield ("function", "parameters"), text
        return
    for _, text in schema_faults(parameters, is_unknown):
        yield ("function", "parameters"), f'"parameters" {text}'


def function_name(tool: Mapping[str, Any]) -> str:
    """The name of a tool; empty if it has none that is known."""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""
