"""What is wrong inside the values of a config: headers, parameters, statuses, schemas, numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from penstock.definition.fields import excerpt_of, kind_of
from penstock.definition.schema import cheap_schema

ValueFault: TypeAlias = tuple[tuple[str | int, ...], str]
"""Where in a value, and what is wrong there."""
IsUnknown: TypeAlias = Callable[[Any], bool]
"""Whether nothing is known of a value yet, because it is a reference."""


def is_never_unknown(_: Any) -> bool:
    """For configs in which references were filled in: `{{` in a text is what a user wrote."""
    return False


NUMBER_CHARACTERS_MAX = 40
"""The characters of the longest text that is read as a number.

A number in JSON has no more of them, and a text of many digits would take long to read.
"""
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# The client frames messages; a document that could do so too could smuggle a second request into
# the first. `Host` is the URL's: another one would reach a server that nobody has checked, behind
# the one that was.
RESERVED_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def header_faults(headers: Mapping[str, Any], is_unknown: IsUnknown) -> Iterator[ValueFault]:
    """Null values are left out by the handler, so that a fallback of a reference can drop one."""
    seen: set[str] = set()
    for name, value in headers.items():
        if value is None or is_unknown(name):
            continue
        if not HEADER_NAME.fullmatch(name):
            yield (name,), f"{name[:80]!r} can't be the name of a header"
        elif name.lower() in RESERVED_HEADERS:
            yield (name,), "the HTTP client sets this header; remove it"
        elif name.lower() in seen:
            yield (name,), "the header is given twice"
        seen.add(name.lower())
        if is_unknown(value):
            continue
        if not _is_scalar(value):
            yield (name,), f"must be text, a number or a boolean, not {kind_of(value)}"
        elif isinstance(value, str) and HEADER_CONTROLS.search(value):
            yield (name,), "line breaks and control characters aren't allowed"


def parameter_faults(parameters: Mapping[str, Any], is_unknown: IsUnknown) -> Iterator[ValueFault]:
    for name, value in parameters.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None and not is_unknown(item) and not _is_scalar(item):
                yield (name,), f"must be text, a number or a boolean, not {kind_of(item)}"


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bool, int, float))


def status_faults(value: Any, is_unknown: IsUnknown) -> Iterator[ValueFault]:
    """A status, or a list of them."""
    if not isinstance(value, list):
        if not is_status(value):
            yield (), f"a status is a number from 100 to 599, not {excerpt_of(value)}"
        return
    for number, status in enumerate(value):
        if not is_unknown(status) and not is_status(status):
            yield (number,), f"a status is a number from 100 to 599, not {excerpt_of(status)}"


def is_status(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 100 <= value <= 599 and value == int(value)  # noqa: PLR2004


def operand_faults(value: Any, is_unknown: IsUnknown) -> Iterator[ValueFault]:
    """A number, which may also be written as text."""
    if not is_unknown(value) and not is_operand(value):
        yield (), f"must be a number, not {excerpt_of(value)}"


def is_operand(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    if isinstance(value, str) and len(value) > NUMBER_CHARACTERS_MAX:
        return False
    try:
        return math.isfinite(float(value))
    except (ValueError, OverflowError):
        return False


def schema_faults(schema: Any, is_unknown: IsUnknown) -> Iterator[ValueFault]:
    """A schema that takes long to compile isn't compiled here: the worker does that."""
    if any(is_unknown(text) for text in _texts(schema)):
        return
    try:
        cheap_schema(schema)
    except ValueError as error:
        yield (), f"isn't a usable JSON Schema: {error}"


def _texts(value: Any) -> Iterable[str]:
    values = [value]
    while values:
        inner = values.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, Mapping):
            yield from inner
            values += inner.values()
        elif isinstance(inner, list):
            values += inner
