"""Ports that are free, and will be so again after a restart."""

from __future__ import annotations

import random
import socket

from penstock.errors import PenstockError

HOST = "127.0.0.1"
PORT_MIN, PORT_MAX = 15_000, 30_000
"""Below those that systems give to outgoing connections, so that none of these takes it while a
server restarts.
"""
TRIES = 200


def free_port() -> int:
    """Free when we looked: somebody may be faster, so whoever starts a server on it tries again with another."""
    for _ in range(TRIES):
        port = random.randrange(PORT_MIN, PORT_MAX)  # noqa: S311 -- not a secret
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
            return port
    raise PenstockError(f"no port is free between {PORT_MIN} and {PORT_MAX}")
