"""A child process for `runs_in="process"`: it runs one handler call after another.

Started as `python -m penstock.worker.child ORIGIN…`, where an origin is a module's name or a
script's path. Requests come on standard input, replies go to what was standard output; what a
handler prints goes to standard error. What it logs goes to the worker line by line.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import BinaryIO

import msgspec

from penstock.errors import Terminal
from penstock.worker.context import Context
from penstock.worker.loading import load_handlers
from penstock.worker.logs import AttemptLog, capture_logging, current_log
from penstock.worker.outcome import describe, encode_output, is_retryable, retry_after
from penstock.worker.protocol import LENGTH, READY, Line, Reply, Request
from penstock.worker.registry import Handler, registered


class Mouth:
    """Messages to the worker.

    Any thread of a handler may log, and not all end when the handler returns.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._process_id = os.getpid()
        self._lock = threading.RLock()  # a signal's handler may log in the middle of a line
        self._log: ToldLog | None = None

    def begin(self, limit: int) -> ToldLog:
        self._log = ToldLog(limit, self)
        return self._log

    def tell(self, log: ToldLog, line: str) -> None:
        if os.getpid() != self._process_id:
            return  # of a process that the handler has forked
        # OSError: the worker is gone, which is no failure of the handler's
        with self._lock, suppress(OSError):
            if log is self._log:
                self._say(Line(line))

    def end(self, reply: Reply) -> None:
        with self._lock:
            self._log = None
            self._say(reply)

    def _say(self, message: Line | Reply) -> None:
        data = msgspec.msgpack.encode(message)
        self._stream.write(LENGTH.pack(len(data)) + data)
        self._stream.flush()


class ToldLog(AttemptLog):
    """An attempt's log whose lines go to the worker as they are written."""

    __slots__ = ("_mouth",)

    def __init__(self, limit: int, mouth: Mouth) -> None:
        super().__init__(limit)
        self._mouth = mouth

    def append(self, line: str) -> None:
        super().append(line)
        self._mouth.tell(self, line)


def main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    capture_logging()
    load_handlers(sys.argv[1:])
    replies.write(READY)
    replies.flush()

    requests = sys.stdin.buffer
    mouth = Mouth(replies)
    while (request := _read(requests)) is not None:
        mouth.end(_run(request, mouth.begin(request.log_bytes)))


def _read(stream: BinaryIO) -> Request | None:
    header = stream.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    return msgspec.msgpack.decode(stream.read(LENGTH.unpack(header)[0]), type=Request)


def _find(name: str) -> Handler:
    handler = registered.get(name)
    if handler is None:
        raise Terminal(
            f"the handler {name!r} runs in a process, so it must be at the top level of its module"
        )
    return handler


def _run(request: Request, log: ToldLog) -> Reply:
    current_log.set(log)
    try:
        handler = _find(request.handler)
        context = Context(**request.context, inputs=request.inputs, on_heartbeat=log.heartbeat)
        config = msgspec.json.decode(request.config)
        value = handler.prepare(config, context)()
        return Reply(
            output=encode_output(value),
            error=None,
            retryable=False,
            retry_after=None,
            dropped=log.dropped,
        )
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it is the handler's failure
        return Reply(
            output=None,
            error=describe(error, request.secrets),
            retryable=is_retryable(error),
            retry_after=retry_after(error),
            dropped=log.dropped,
        )


if __name__ == "__main__":
    main()
