"""Texts in PostgreSQL: escaped, since columns can't hold U+0000, or digested for an index."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

from penstock.stores import codec

DIGEST_BYTES = 16
_MARK = "\ue000"
_ESCAPED = {"0": "\x00", "1": _MARK}
_PAIR = re.compile(f"{_MARK}([01])")
_BLOB = re.compile(rb"\xa4blob\xd9@([0-9a-f]{64})")
"""How `events.Blob` looks in msgpack: a tag and the hexadecimal digits of a SHA-256."""


def escaped(text: str) -> str:
    """The text without U+0000, nearly always as it is. Escaped texts compare as the texts do."""
    if _MARK not in text and "\x00" not in text:
        return text
    return text.replace(_MARK, f"{_MARK}1").replace("\x00", f"{_MARK}0")


def unescaped(text: str) -> str:
    return _PAIR.sub(lambda pair: _ESCAPED[pair[1]], text) if _MARK in text else text


def digest(*parts: Any) -> bytes:
    return blake2b(codec.encode(parts), digest_size=DIGEST_BYTES).digest()


def blob_keys(data: bytes) -> set[str]:
    """Keys of all blobs that encoded data names.

    Anything that looks like a key counts: a blob that isn't deleted does no harm.
    """
    return {key.decode() for key in _BLOB.findall(data)} if b"\xa4blob" in data else set()
