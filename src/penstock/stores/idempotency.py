"""Idempotency keys: which execution a request that comes again has made before.

What every store goes by.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import NamedTuple

from penstock.errors import KeyReused
from penstock.stores.base import KEY_SECONDS, Intent

Key = tuple[str, str]
"""Whose, and its text."""


class KeyUse(NamedTuple):
    """The execution that an idempotency key was used for first, and what was asked then."""

    execution_id: str
    request_hash: str
    created_at: float


def resolve_keys(intents: Iterable[Intent], known: MutableMapping[Key, KeyUse]) -> list[str]:
    """Answers each one's id, or that of the execution that its key has made; notes new keys in `known`.

    Raises `KeyReused`; what `known` has become is of no use then.
    """
    return [_resolve_key(intent, known) for intent in intents]


def _resolve_key(intent: Intent, known: MutableMapping[Key, KeyUse]) -> str:
    record = intent.record
    if intent.idempotency_key is None:
        return record.execution_id
    key = (intent.key_scope, intent.idempotency_key)
    before = replayed(
        known.get(key), intent.idempotency_key, intent.request_hash, record.created_at
    )
    if before is not None:
        return before
    known[key] = KeyUse(record.execution_id, intent.request_hash, record.created_at)
    return record.execution_id


def replayed(key_use: KeyUse | None, key: str, request_hash: str, now: float) -> str | None:
    """The execution that this request has made before.

    Raises `KeyReused` if it was another request.
    """
    if key_use is None or now - key_use.created_at >= KEY_SECONDS:
        return None
    if key_use.request_hash != request_hash:
        raise KeyReused(f"the idempotency key {key!r} was used for another request; use a new key")
    return key_use.execution_id
