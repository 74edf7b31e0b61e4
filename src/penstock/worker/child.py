"""The other side of `runs_in="process"`: a process that runs one handler call after another.

Started as `python -m penstock.worker.child ORIGIN…`, where an origin is a module's name or a script's path. Requests
come on standard input, replies go to what was standard output; what a handler prints goes to standard error.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

import msgspec

from penstock.errors import Terminal
from penstock.worker.context import Context
from penstock.worker.loading import load_handlers
from penstock.worker.logs import AttemptLog, capture_logging, current_log
from penstock.worker.outcome import describe, encode_output, is_retryable, retry_after
from penstock.worker.protocol import LENGTH, READY, Reply, Request
from penstock.worker.registry import Handler, registered


def main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    capture_logging()
    load_handlers(sys.argv[1:])
    replies.write(READY)
    replies.flush()
    requests = sys.stdin.buffer
    while (request := _read(requests)) is not None:
        data = msgspec.msgpack.encode(_run(request))
        replies.write(LENGTH.pack(len(data)) + data)
        replies.flush()


def _read(stream: BinaryIO) -> Request | None:
    header = stream.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    return msgspec.msgpack.decode(stream.read(LENGTH.unpack(header)[0]), type=Request)


def _find(name: str) -> Handler:
    handler = registered.get(name)
    if handler is None:
        raise Terminal(f"the handler {name!r} runs in a process, so it must be at the top level of its module")
    return handler


def _run(request: Request) -> Reply:
    log = AttemptLog(request.log_bytes)
    current_log.set(log)
    try:
        handler = _find(request.handler)
        context = Context(**request.context, inputs=request.inputs, on_heartbeat=log.heartbeat)
        value = handler.function(*handler.arguments(msgspec.json.decode(request.config), context))
        return Reply(encode_output(value), None, False, None, log.text())  # noqa: FBT003 -- a record
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it is the handler's failure
        return Reply(None, describe(error, request.secrets), is_retryable(error), retry_after(error), log.text())


if __name__ == "__main__":
    main()
