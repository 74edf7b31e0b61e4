"""Links with which somebody without an API key decides one approval.

A link is signed with the hash of the API key that made it: nobody else can make one, and revoking
the key ends its links. What it can decide is decided once, by the state of the approval.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import msgspec

from penstock.errors import NotFound
from penstock.stores.cold import ApiKeys
from penstock.stores.records import ApiKey

PURPOSE = b"penstock approval link\x00"
TOKEN_CHARACTERS_MAX = 4096


class Link(msgspec.Struct, array_like=True, frozen=True):
    """What a link says."""

    execution_id: str
    node_id: str
    attempt: int
    by: str
    """Who decides with it."""
    key_id: str
    expires_at: float


_decoder = msgspec.msgpack.Decoder(Link)


def sign(link: Link, key: ApiKey) -> str:
    """The token of a link."""
    body = msgspec.msgpack.encode(link)
    return f"{_text(body)}.{_text(_signature(body, key))}"


async def read(token: str, keys: ApiKeys, now: float) -> tuple[Link, ApiKey]:
    """The link of a token, and the key that made it. Raises `NotFound` for any that isn't valid."""
    refusal = NotFound("this link isn't valid, or not any more; ask for another one")
    body_text, _, signature_text = token.partition(".")
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise refusal
    try:
        body = _bytes(body_text)
        signature = _bytes(signature_text)
        link = _decoder.decode(body)
    except (ValueError, msgspec.DecodeError):
        raise refusal from None
    key = next((key for key in await keys.keys() if key.id == link.key_id), None)
    if key is None or key.revoked_at is not None or link.expires_at < now:
        raise refusal
    if not hmac.compare_digest(signature, _signature(body, key)):
        raise refusal
    return link, key


def _signature(body: bytes, key: ApiKey) -> bytes:
    return hmac.new(key.hash, PURPOSE + body, sha256).digest()


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
