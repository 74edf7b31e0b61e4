"""Intents as columns of a row: the record, and the rest of the intent if there is any."""

from __future__ import annotations

import msgspec

from penstock.stores import codec
from penstock.stores.base import Intent, ReusedOutput


class Rest(msgspec.Struct, array_like=True):
    """The parts of an `Intent` beside its record, if it has any."""

    idempotency_key: str | None
    request_hash: str
    key_scope: str
    reused: list[ReusedOutput]


_rest_decoder = msgspec.msgpack.Decoder(Rest)
decode_rest = _rest_decoder.decode


def encode_rest(intent: Intent) -> bytes | None:
    has_rest = (
        intent.idempotency_key is not None
        or intent.reused
        or intent.request_hash
        or intent.key_scope
    )
    if not has_rest:
        return None
    return codec.encode(
        Rest(intent.idempotency_key, intent.request_hash, intent.key_scope, intent.reused)
    )


def decode_intent(
    record: bytes, rest_data: bytes | None, retry_of: str | None, *, waits: bool
) -> Intent:
    intent = Intent(codec.decode_record(record), retry_of=retry_of, waits=waits)
    if rest_data is not None:
        rest = decode_rest(rest_data)
        intent.idempotency_key = rest.idempotency_key
        intent.request_hash = rest.request_hash
        intent.key_scope = rest.key_scope
        intent.reused = rest.reused
    return intent
