"""The HTTP server of a process with an API: uvicorn on a socket that was bound before."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket

import uvicorn
from starlette.types import ASGIApp

from penstock.api.http_protocol import limited_protocol
from penstock.errors import SettingsError

KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048


class HttpServer(uvicorn.Server):
    """A uvicorn server that doesn't handle signals, and says when it is ready."""

    def __init__(self, app: ASGIApp, shutdown_grace_seconds: float) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            http=limited_protocol(),
            ws="none",
            lifespan="off",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(shutdown_grace_seconds) or 1,
        )
        # we log ourselves that the server starts and stops
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]  # noqa: ANN201 -- uvicorn's
        yield


def bind(host: str, port: int) -> socket.socket:
    """The socket of the server, bound before anything else starts.

    So a port in use is a clear error, and the port that stands for port 0 is known.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol, asyncio doesn't set TCP_NODELAY on accepted connections, which inherit
    # it: an answer's body would then wait for the client's delayed acknowledgement of its head,
    # 40 ms each time.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise SettingsError(
            f"can't listen on {host}:{port}: {error.strerror}; choose another with --port"
        ) from None
    listening.listen(BACKLOG)
    listening.setblocking(False)  # noqa: FBT003 -- its only argument
    return listening


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
