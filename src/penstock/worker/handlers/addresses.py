"""The address policy: which addresses a document may make a worker call.

A document's author picks the URL, but the call starts inside the operator's network. So a name is
resolved once, *every* address of the answer is checked, and the connection goes to one of exactly
these: a name that gives another answer a moment later (DNS rebinding) gains nothing. What isn't
public is refused unless a setting allows it. The metadata services of the clouds, which hand out
credentials, are refused whatever the settings say.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeAlias

from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Endpoint: TypeAlias = tuple[int, tuple[Any, ...]]
"""A socket family and what `connect` takes for it."""
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[tuple[Any, ...]]]]
"""Resolves a name and a port, as `getaddrinfo` does.

It answers with tuples of family, type, protocol, canonical name and socket address.
"""

SCHEMES = ("http", "https")


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


# AWS, Azure, Google, Oracle, DigitalOcean, ECS and EKS tasks, Tencent, Scaleway; Azure's wire
# server; Alibaba; Oracle Classic; then AWS, EKS, Google and Scaleway over IPv6.
METADATA = _networks(
    "169.254.169.0/24",
    "169.254.170.0/24",
    "169.254.0.23/32",
    "169.254.42.42/32",
    "168.63.129.16/32",
    "100.100.100.200/32",
    "192.0.0.192/32",
    "fd00:ec2::/64",
    "fd20:ce::254/128",
    "fd00:42::42/128",
)
# Python's own `is_private` and `is_global` have changed between 3.11 and 3.13, and know nothing of
# what is embedded.
SPECIAL: dict[str, tuple[Network, ...]] = {
    "metadata": METADATA,
    "loopback": _networks("127.0.0.0/8", "::1/128"),
    "private": _networks(
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"
    ),
    "link-local": _networks("169.254.0.0/16", "fe80::/10", "fec0::/10"),
    "local NAT64": _networks("64:ff9b:1::/48"),
    "multicast": _networks("224.0.0.0/4", "ff00::/8"),
    "unspecified": _networks("0.0.0.0/8", "::/128"),
    "reserved": _networks(
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
        "2001:2::/48",
        "2001:10::/28",
        "2001:20::/28",
        "2001:db8::/32",
        "3fff::/20",
    ),
}
OPENED_BY_PRIVATE = frozenset({"loopback", "private"})
GLOBAL_UNICAST = IPv6Network("2000::/3")

# Where an IPv6 address carries an IPv4 one: how many bits the IPv4 address is shifted to the left.
EMBEDDED: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("::/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("64:ff9b:1::/48"), 0),
    (IPv6Network("2002::/16"), 80),
    (IPv6Network("2001::/32"), 64),
)
TEREDO = IPv6Network("2001::/32")
NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
ISATAP = 0x5EFE
ISATAP_MASK = 0xFDFFFFFF


def literal(host: str) -> Address | None:
    """The address that a host means; None if the host is a name.

    Also `0x7f.1`, `2852039166`, `127.1` and `0177.0.0.1` are addresses: C libraries connect to all
    of these. As in browsers, a host whose last part is a number must be such an address: a second
    reading of it by somebody else would get around the policy.
    """
    if ":" in host:
        return _parsed(host)
    texts = host.removesuffix(".").split(".")
    if not re.fullmatch(r"[0-9]+|0x[0-9a-f]*", texts[-1], re.ASCII | re.IGNORECASE):
        return None

    # The last part fills all the bytes that the parts before it leave: 127.1 is 127.0.0.1.
    *head, tail = [_number(text) for text in texts]
    if len(head) > 3 or any(part > 255 for part in head):  # noqa: PLR2004 -- IPv4
        raise _not_an_address(host)
    if tail >= 256 ** (4 - len(head)):
        raise _not_an_address(host)
    return IPv4Address(tail + sum(part << (24 - 8 * index) for index, part in enumerate(head)))


def _parsed(host: str) -> Address:
    try:
        if "%" not in host:
            return ip_address(host)
    except ValueError:
        pass
    raise _not_an_address(host)


def _number(text: str) -> int:
    """A part of an IPv4 address, by C's rules; what isn't one is too large to be one."""
    for pattern, base in (
        (r"0x([0-9a-f]{0,16})", 16),
        (r"0([0-7]{0,16})", 8),
        (r"([1-9][0-9]{0,15})", 10),
    ):
        if match := re.fullmatch(pattern, text, re.ASCII | re.IGNORECASE):
            return int(match[1] or "0", base)
    return 2**32


def _not_an_address(host: str) -> Terminal:
    message = f"the host '{host[:80]}' is neither a name nor an address"
    return Terminal(message, category=ErrorCategory.ADDRESS)


def embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """Every IPv4 address that a packet to this IPv6 address may end up at.

    That is by any tunnel or translator that has a standard.
    """
    value = int(address)
    for network, shift in EMBEDDED:
        if address in network:
            yield IPv4Address((value >> shift) & 0xFFFFFFFF)
    if address in TEREDO:
        yield IPv4Address(~value & 0xFFFFFFFF)
    if (value >> 32) & ISATAP_MASK == ISATAP:
        yield IPv4Address(value & 0xFFFFFFFF)
    if address in NAT64_LOCAL:
        # RFC 6052 with a prefix of 48 bits; bits 64 to 71 are left out.
        yield IPv4Address(((value >> 64) & 0xFFFF) << 16 | (value >> 40) & 0xFFFF)


def kind(address: Address) -> str:
    """The kind of an address: `public`, or why it isn't public."""
    for name, networks in SPECIAL.items():
        if any(address in network for network in networks):
            return name
    if isinstance(address, IPv4Address) or address in GLOBAL_UNICAST:
        return "public"
    return "reserved"


def meanings(address: Address) -> list[Address]:
    """The addresses that must be allowed for this address to be called.

    Where an IPv4 address inside it decides, only that.
    """
    if isinstance(address, IPv4Address):
        return [address]
    inner: list[Address] = list(embedded(address))
    match kind(address):
        case "public" | "reserved":
            return inner or [address]
        case "local NAT64":
            # Its layout is the operator's choice, so what is read out of it can forbid but not
            # allow.
            return [address, *inner]
        case _:
            return [address]


async def system_resolver(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class AddressPolicy:
    """The addresses that may be called.

    `private` allows loopback and private networks; `allow` has single hosts, addresses and networks
    that are allowed too.
    """

    def __init__(
        self,
        *,
        private: bool = False,
        allow: Sequence[str] = (),
        resolver: Resolver = system_resolver,
    ) -> None:
        self.private = private
        self.allow = tuple(allow)
        self._resolver = resolver
        self._networks: list[Network] = []
        self._names: set[str] = set()
        for entry in allow:
            try:
                self._networks.append(ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                self._names.add(_name(entry))

    def widened(self, *allow: str) -> AddressPolicy:
        return AddressPolicy(
            private=self.private, allow=(*self.allow, *allow), resolver=self._resolver
        )

    def check(self, address: Address | str, host: str = "") -> None:
        """Raise `Terminal` unless this address may be called.

        `host` is the name it was found under.
        """
        if isinstance(address, str):
            address = ip_address(address.partition("%")[0])
        kinds = {meaning: kind(meaning) for meaning in meanings(address)}

        for meaning, what in kinds.items():
            if what == "metadata":
                raise _refusal(address, meaning, host, "cloud metadata, which no setting allows")

        for meaning, what in kinds.items():
            if not self._opened(what, address, meaning, host):
                setting = f"PENSTOCK_HTTP_ALLOW={meaning}"
                hint = f"To allow it, set {setting}, or a name or network that covers it"
                raise _refusal(address, meaning, host, f"{what}. {hint}")

    def _opened(self, what: str, address: Address, meaning: Address, host: str) -> bool:
        if what == "public" or (self.private and what in OPENED_BY_PRIVATE):
            return True
        if host and _name(host) in self._names:
            return True
        return any(address in network or meaning in network for network in self._networks)

    async def resolve(self, host: str, port: int) -> list[Endpoint]:
        """The endpoints to connect to, all checked.

        One forbidden address in the answer refuses all of it.
        """
        address = literal(host)
        if address is not None:
            self.check(address, host)
            return [_endpoint(address, port)]
        answers = await self._resolver(host, port)
        for _, _, _, _, sockaddr in answers:
            self.check(str(sockaddr[0]), host)
        return [(int(family), tuple(sockaddr)) for family, _, _, _, sockaddr in answers]


def _refusal(address: Address, meaning: Address, host: str, reason: str) -> Terminal:
    means = "" if meaning == address else f" (which means {meaning})"
    of_host = f" of '{host}'" if host and host != str(address) else ""
    message = f"the address {address}{means}{of_host} is refused: {reason}"
    return Terminal(message, category=ErrorCategory.ADDRESS)


def _endpoint(address: Address, port: int) -> Endpoint:
    if isinstance(address, IPv4Address):
        return int(socket.AF_INET), (str(address), port)
    return int(socket.AF_INET6), (str(address), port, 0, 0)


def _name(host: str) -> str:
    return host.rstrip(".").lower()
