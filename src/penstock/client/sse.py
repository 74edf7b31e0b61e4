"""Server-Sent Events, from bytes as they arrive.

As the WHATWG describes them, without what no server of ours sends.
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
    """`feed` it pieces of any size; it gives each event when its blank line has come."""

    def __init__(self) -> None:
        self._rest = b""
        self._kind, self._data = "message", list[str]()
        self._id: str | None = None

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        text = self._rest + piece
        # A last \r may be half of a \r\n whose other half is still on its way.
        carriage_return = b"\r" if text.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(text[: len(text) - len(carriage_return)])
        self._rest = rest + carriage_return
        for line in lines:
            if line:
                self._field(line)
            elif (event := self._event()) is not None:
                yield event

    def _field(self, line: bytes) -> None:
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self._id = value

    def _event(self) -> ServerEvent | None:
        """None where there is no data, as after a heartbeat's comment."""
        kind, data, id_ = self._kind, self._data, self._id
        self._kind, self._data, self._id = "message", [], None
        return ServerEvent(kind, "\n".join(data), id_) if data or kind != "message" else None
