"""Free ports, which are free again after a restart of their server."""

from __future__ import annotations

import random
import socket

from penstock.errors import PenstockError

HOST = "127.0.0.1"
PORT_MIN = 15_000
PORT_MAX = 30_000
"""Systems give higher ports to outgoing connections, which could take one while a server restarts.
"""
TRIES = 200


def free_port() -> int:
    """A port that is free now.

    Another process may take it first, so a server that can't bind it tries another one.
    """
    for _ in range(TRIES):
        port = random.randrange(PORT_MIN, PORT_MAX)  # noqa: S311 -- not a secret
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
            return port
    raise PenstockError(f"no port between {PORT_MIN} and {PORT_MAX} is free")
