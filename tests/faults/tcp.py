"""A TCP proxy in threads of its own.

It can fall silent without hanging up, and can lead to another server.

with TcpProxy(server.url) as proxy:
    plant.start("api", DATABASE=proxy.url)
    proxy.is_silent = True          # what is sent from now on goes nowhere; connections stay open
    proxy.reads.clear()             # nothing is read until reads.set(), so senders wait
    proxy.lead_to(other.url)        # those that are open are cut, new ones lead there
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self
from urllib.parse import urlsplit, urlunsplit

READ_BYTES = 1 << 16
LOOK_SECONDS = 0.05


class TcpProxy:
    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._target = (self._url.hostname or "", self._url.port or 0)
        self.is_silent = False
        self.reads = threading.Event()
        self.reads.set()
        self.accepted = 0
        self._is_closed = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def url(self) -> str:
        """What a role is told in place of the server's own."""
        who, at, _ = self._url.netloc.rpartition("@")
        return urlunsplit(
            self._url._replace(netloc=f"{who}{at}127.0.0.1:{self._listener.getsockname()[1]}")
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._listener.close()
        self.cut()

    def lead_to(self, url: str) -> None:
        address = urlsplit(url)
        self._target = (address.hostname or "", address.port or 0)
        self.cut()

    def cut(self) -> None:
        """Hang up on everybody."""
        with self._lock:
            doomed, self._open = self._open, set()
        for connection in doomed:
            _close(connection)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            _close(client)
            return
        with self._lock:
            self._open |= {client, server}
        back = threading.Thread(target=self._pass_on, args=(server, client), daemon=True)
        back.start()
        self._pass_on(client, server)
        back.join()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            source.settimeout(LOOK_SECONDS)
            while not self._is_closed:
                if not self.reads.wait(LOOK_SECONDS):
                    continue
                try:
                    data = source.recv(READ_BYTES)
                except TimeoutError:
                    continue
                if not data:
                    break
                if not self.is_silent:
                    target.sendall(data)
        for connection in (source, target):
            with self._lock:
                self._open.discard(connection)
            _close(connection)


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
