"""No test in this folder can send a packet to another machine.

Whatever the code does.
"""

import asyncio.selector_events
import ipaddress
import socket
from collections.abc import Iterator
from typing import Any

import pytest

BaseLoop = asyncio.selector_events.BaseSelectorEventLoop


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The addresses that asyncio was to connect to.

    Those outside loopback are recorded and not connected.
    """
    tried: list[str] = []
    connect = BaseLoop.sock_connect
    lookup = socket.getaddrinfo

    async def only_loopback(loop: Any, sock: socket.socket, address: Any) -> None:
        if sock.family in {socket.AF_INET, socket.AF_INET6}:
            tried.append(str(address[0]))
            if not ipaddress.ip_address(address[0]).is_loopback:
                raise OSError(f"the tests don't connect to {address[0]}")
        await connect(loop, sock, address)

    def only_local(host: Any, *arguments: Any, **options: Any) -> Any:
        if host in {None, "localhost"} or str(host).replace(".", "").isdigit() or ":" in str(host):
            return lookup(host, *arguments, **options)
        raise socket.gaierror(socket.EAI_NONAME, f"the tests don't look up {host}")

    monkeypatch.setattr(BaseLoop, "sock_connect", only_loopback)
    monkeypatch.setattr(socket, "getaddrinfo", only_local)
    yield tried
    assert [address for address in tried if not ipaddress.ip_address(address).is_loopback] == []
