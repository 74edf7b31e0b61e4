"""Idempotency keys: which execution a repeated request has started. All stores use this."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import NamedTuple

from penstock.errors import KeyReused
from penstock.stores.base import KEY_SECONDS, Intent

Key = tuple[str, str]
"""The scope of an idempotency key, and its text."""


class KeyUse(NamedTuple):
    """The execution that an idempotency key was used for first, and what was asked then."""

    execution_id: str
    request_hash: str
    created_at: float


def resolve_keys(intents: Iterable[Intent], uses: MutableMapping[Key, KeyUse]) -> list[str]:
    """The id of each intent's execution, or of the one that its key has started before.

    New keys are added to `uses`. Raises `KeyReused`; then `uses` must not be stored.
    """
    return [_resolve_key(intent, uses) for intent in intents]


def _resolve_key(intent: Intent, uses: MutableMapping[Key, KeyUse]) -> str:
    record = intent.record
    if intent.idempotency_key is None:
        return record.execution_id
    key = (intent.key_scope, intent.idempotency_key)
    earlier_id = replayed(
        uses.get(key), intent.idempotency_key, intent.request_hash, record.created_at
    )
    if earlier_id is not None:
        return earlier_id
    uses[key] = KeyUse(record.execution_id, intent.request_hash, record.created_at)
    return record.execution_id


def replayed(key_use: KeyUse | None, key: str, request_hash: str, now: float) -> str | None:
    """The execution that this request has started before; None if it hasn't.

    Raises `KeyReused` if it was another request.
    """
    if key_use is None or now - key_use.created_at >= KEY_SECONDS:
        return None
    if key_use.request_hash != request_hash:
        raise KeyReused(f"the idempotency key {key!r} was used for another request; use a new key")
    return key_use.execution_id
