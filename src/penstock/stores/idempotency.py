"""Idempotency keys: which execution a request that comes again has made before. What every store goes by."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import NamedTuple

from penstock.errors import KeyReused
from penstock.stores.base import KEY_SECONDS, NewExecution

Key = tuple[str, str]
"""Whose, and its text."""


class Made(NamedTuple):
    execution_id: str
    request_hash: str
    created_at: float


def settle(executions: Iterable[NewExecution], known: MutableMapping[Key, Made]) -> list[str]:
    """Answers each one's id, or that of the execution that its key has made; notes new keys in `known`.

    Raises `KeyReused`; what `known` has become is of no use then.
    """
    return [_settle(new, known) for new in executions]


def _settle(new: NewExecution, known: MutableMapping[Key, Made]) -> str:
    record = new.record
    if new.idempotency_key is None:
        return record.execution_id
    key = (new.key_scope, new.idempotency_key)
    made = known.get(key)
    if made is None or record.created_at - made.created_at >= KEY_SECONDS:
        known[key] = made = Made(record.execution_id, new.request_hash, record.created_at)
    elif made.request_hash != new.request_hash:
        raise KeyReused(f"the idempotency key {new.idempotency_key!r} was used for another request; use a new key")
    return made.execution_id
