"""A leash runs a command, and ends it when the process that started the leash has ended.

It is run as a script, not imported: `python -I -S leash.py '{"command": […], …}'`. Its standard
input is a pipe that nobody writes to; the end of the pipe means that the other side is closed or
dead. The leash prints the command's process id on its standard output, and ends with the command's
exit code. The output of the command goes to standard error.

Linux's "signal at the parent's death" would not do: it depends on the thread that started the
process, which may end long before its process does, and other systems don't have it.
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
    """Wait for the end of the pipe, ask the command to stop, and kill it if it doesn't."""
    sys.stdin.read()
    command.send_signal(number)
    try:
        command.wait(seconds)
    except subprocess.TimeoutExpired:
        command.kill()


def main(order: "dict[str, Any]") -> int:
    # These signals do nothing, but aren't ignored: the command would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
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

    arguments = (command, order["signal"], order["seconds"])
    threading.Thread(target=end, args=arguments, daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{command.pid}\n")
        sys.stdout.flush()
    code = command.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    import os

    # A normal exit would wait for the thread that reads the pipe.
    os._exit(main(json.loads(sys.argv[1])))
