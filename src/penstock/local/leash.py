"""Runs a command and ends it when whoever started this is gone, however that one ended.

Run as a script, not imported: `python -I -S leash.py '{"command": […], …}'`. Its standard input is
a pipe that nobody writes to; the end of it means that the other side is closed or dead. It says the
command's process id on its standard output, and ends with the command's exit code. What the command
prints goes to standard error.

A pipe rather than Linux's "signal at the parent's death": that one goes by the thread that started
the process, which may end long before its process does, and other systems don't have it.
"""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from typing import Any

CANNOT_START = 126


def end(command: "subprocess.Popen[bytes]", number: int, seconds: float) -> None:
    """When the pipe ends: ask it to stop, and make it if it doesn't."""
    sys.stdin.read()
    command.send_signal(number)
    try:
        command.wait(seconds)
    except subprocess.TimeoutExpired:
        command.kill()


def main(order: "dict[str, Any]") -> int:
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
    ):  # not ignored: that would be inherited
        signal.signal(number, lambda *_: None)
    account: dict[str, Any] = {}
    if order["user"] is not None:
        account = {"user": order["user"], "group": order["group"], "extra_groups": []}
    try:
        command = subprocess.Popen(  # noqa: S603 -- what it is for
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
            cwd=order["folder"],
            start_new_session=True,
            **account,
        )
    except OSError as error:
        sys.stderr.write(f"can't start {order['command'][0]}: {error}\n")
        return CANNOT_START
    watch = threading.Thread(
        target=end, args=(command, order["signal"], order["seconds"]), daemon=True
    )
    watch.start()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{command.pid}\n")
        sys.stdout.flush()
    code = command.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    import os

    # past the thread that still waits for the pipe, and whatever Python would like to flush into it
    os._exit(main(json.loads(sys.argv[1])))
