"""The address of the client: the other end of the connection, or what a trusted proxy says it is.

`X-Forwarded-For` is a list, and each proxy appends the address that it got the request from. It is
read from the end, past the trusted proxies, to the first other address. What stands before that was
written by the client, who may write anything.
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
        """The address that a request comes from; empty if it isn't known, as on a Unix socket."""
        client = scope.get("client")
        address = _normal(client[0]) if client else ""
        if not self._networks or not self._trusted(address):
            return address

        values = [value.decode("latin-1") for name, value in scope["headers"] if name == FORWARDED]
        for entry in reversed(",".join(values).split(",")):
            forwarded = _normal(entry)
            if not forwarded:
                break  # not an address: nothing before it can be relied on
            address = forwarded
            if not self._trusted(address):
                break
        return address

    def _is_trusted(self, address: str) -> bool:
        if not address:
            return False
        parsed = ip_address(address)
        return any(parsed in network for network in self._networks)


def limited_part(address: str) -> str:
    """The part of an address that a rate limit counts.

    For IPv6 it is the network, since a client there usually has 2^64 addresses.
    """
    if ":" not in address:
        return address
    without_zone, _, _ = address.partition("%")
    return str(ip_network((without_zone, 64), strict=False))


@lru_cache(maxsize=1024)
def _normal(text: str) -> str:
    """An address without port and brackets, and not as IPv4 in IPv6; empty if it isn't one."""
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
