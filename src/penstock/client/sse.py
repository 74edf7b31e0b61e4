"""A parser of Server-Sent Events, as far as our servers use them.

The format is the one that the WHATWG describes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    kind: str
    data: str
    id: str | None


class EventParser:
    """A parser that is fed pieces of any size and gives each event at its blank line."""

    def __init__(self) -> None:
        self._rest = b""
        self._kind = "message"
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        text = self._rest + piece
        # A \r at the end may be half of a \r\n whose other half is yet to come.
        carriage_return = b"\r" if text.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(text[: len(text) - len(carriage_return)])
        self._rest = rest + carriage_return

        for line in lines:
            if line:
                self._read_field(line)
            elif (event := self._end_event()) is not None:
                yield event

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self._id = value

    def _end_event(self) -> ServerEvent | None:
        """The event that a blank line ends; None if it has no data, as after a heartbeat."""
        event = None
        if self._data or self._kind != "message":
            event = ServerEvent(self._kind, "\n".join(self._data), self._id)
        self._kind = "message"
        self._data = []
        self._id = None
        return event
