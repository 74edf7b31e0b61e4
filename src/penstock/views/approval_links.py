"""Tokens of links with which somebody decides one approval: what they say, and their signature.

A link is signed with the hash of the API key that made it, or, in a notification, with the secret
of notifications. Pure: who may use a link is judged by `service.approval_links`.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import NamedTuple

import msgspec

PURPOSE = b"penstock approval link\x00"
TOKEN_CHARACTERS_MAX = 4096
NOTIFICATION = ""
"""Stands for the id of an API key in links that notifications have."""


class Link(msgspec.Struct, array_like=True, frozen=True):
    """What a link says."""

    execution_id: str
    node_id: str
    attempt: int
    by: str
    """Who decides with it."""
    key_id: str
    expires_at: float


class SignedLink(NamedTuple):
    """A link as it came, with its signature."""

    link: Link
    body: bytes
    signature: bytes

    def is_signed_with(self, secret: bytes) -> bool:
        return hmac.compare_digest(self.signature, _signature(self.body, secret))


_decoder = msgspec.msgpack.Decoder(Link)


def sign(link: Link, secret: bytes) -> str:
    """The token of a link."""
    body = msgspec.msgpack.encode(link)
    return f"{_text(body)}.{_text(_signature(body, secret))}"


def read_token(token: str) -> SignedLink | None:
    """What a token says, whoever signed it; None if it is none."""
    body_text, _, signature_text = token.partition(".")
    if len(token) > TOKEN_CHARACTERS_MAX:
        return None
    try:
        body = _bytes(body_text)
        signature = _bytes(signature_text)
        link = _decoder.decode(body)
    except (ValueError, msgspec.DecodeError):
        return None
    return SignedLink(link, body, signature)


def _signature(body: bytes, secret: bytes) -> bytes:
    return hmac.new(secret, PURPOSE + body, sha256).digest()


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
