"""The address of the client: the other end of the connection, or what a trusted proxy says of it.

`X-Forwarded-For` is a list that each proxy adds to at its end. It is read from there, over the
trusted proxies, to the first address that isn't one: what stands before that was written by the
client, who may write anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

FORWARDED = b"x-forwarded-for"


class TrustedProxies:
    """Networks whose `X-Forwarded-For` is believed."""

    def __init__(self, trusted_proxies: Sequence[str] = ()) -> None:
        self._networks = [ip_network(network) for network in trusted_proxies]
        self._trusted = lru_cache(maxsize=1024)(self._is_trusted)

    def client_address(self, scope: Any) -> str:
        """The address that a request comes from.

        Empty if the server doesn't know, as on a Unix socket.
        """
        client = scope.get("client")
        address = _normal(client[0]) if client else ""
        if not self._networks or not self._trusted(address):
            return address
        values = [value.decode("latin-1") for name, value in scope["headers"] if name == FORWARDED]
        for entry in reversed(",".join(values).split(",")):
            before = _normal(entry)
            if not before:
                break  # not an address: nothing in front of it can be relied on
            address = before
            if not self._trusted(address):
                break
        return address

    def _is_trusted(self, address: str) -> bool:
        return bool(address) and any(ip_address(address) in network for network in self._networks)


def limited_part(address: str) -> str:
    """The part of an address that a rate limit counts.

    Of IPv6 the network, since whoever has one address there has 2^64.
    """
    if ":" not in address:
        return address
    return str(ip_network((address.partition("%")[0], 64), strict=False))


@lru_cache(maxsize=1024)
def _normal(text: str) -> str:
    """An address without port and brackets, and IPv4 as such; empty if it is none."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address: IPv4Address | IPv6Address | None = ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(address)
