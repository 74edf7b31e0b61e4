"""Values of users in views: an input, an output. They are JSON, of any size."""

from __future__ import annotations

from typing import Any

import msgspec

UNDECODED_BYTES = 256 * 1024


def undecoded(data: bytes) -> Any:
    """A value for an answer that is encoded as JSON again.

    A large value stays the text that it is: decoding 60 MB takes seconds, in which a loop does
    nothing else.
    """
    return msgspec.Raw(data) if len(data) > UNDECODED_BYTES else msgspec.json.decode(data)


def plain_json(view: Any) -> Any:
    """A view as plain Python data: what a client gets that decodes the JSON of the answer."""
    return msgspec.json.decode(msgspec.json.encode(view))
