"""A Redis or Valkey server that is started here."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from penstock.local.finding import find_redis
from penstock.local.ports import HOST
from penstock.local.process import Process
from penstock.local.server import Server

ANSWER_SECONDS = 1.0
# A server that was built without jemalloc, such as the one in the wheel, takes twice the time for a
# task beside 100,000 waiting executions: glibc searches for free memory between them, unless it
# keeps enough of each size in its cache.
ALLOCATOR = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=65535"}


class RedisServer(Server):
    name = "Redis"

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        append_only: Literal["everysec", "always"] | None = "everysec",
        cluster: bool = False,
        extra: Sequence[str] = (),
    ) -> None:
        """`append_only` is how often writes reach the disk (None: never).

        `extra` are further options of the server.
        """
        super().__init__(folder, port)
        self._append_only = append_only
        self._cluster = cluster
        self._extra = extra

    @property
    def url(self) -> str:
        return f"redis://:{self.password()}@{HOST}:{self.port}/0"

    def _prepare(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.installation = find_redis()

    def _launch(self) -> Process:
        config = self.folder / "server.conf"
        config.touch(mode=0o600)
        config.write_text("".join(f"{line}\n" for line in self._settings()), encoding="utf-8")
        environ = {**ALLOCATOR, **os.environ}
        return Process(
            [self.installation.path, config, *self._extra],
            self.log,
            folder=self.folder,
            environ=environ,
        )

    def _settings(self) -> list[str]:
        lines = [
            f"bind {HOST}",
            f"port {self.port}",
            f"requirepass {self.password()}",
            "dir .",
            "maxmemory-policy noeviction",
            'save ""',
            f"appendonly {'yes' if self._append_only else 'no'}",
            f"appendfsync {self._append_only or 'no'}",
        ]
        if self._cluster:
            lines += [
                "cluster-enabled yes",
                "cluster-config-file nodes.conf",
                f"masterauth {self.password()}",
            ]
        return lines

    def _answers(self) -> bool:
        """Speak the protocol directly: servers must start without a client library."""
        try:
            with socket.create_connection((HOST, self.port), ANSWER_SECONDS) as connection:
                connection.sendall(f"AUTH {self.password()}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2:  # noqa: PLR2004 -- one line for each
                    part = connection.recv(1024)
                    if not part:
                        return False
                    answer += part
        except OSError:
            return False
        return answer.startswith(b"+OK") and b"+PONG" in answer
