"""Idempotency keys: which execution a request that comes again has made before.

What every store goes by.
"""

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


def resolve_keys(executions: Iterable[NewExecution], known: MutableMapping[Key, Made]) -> list[str]:
    """Answers each one's id, or that of the execution that its key has made; notes new keys in `known`.

    Raises `KeyReused`; what `known` has become is of no use then.
    """
    return [_resolve_key(new, known) for new in executions]


def _resolve_key(new: NewExecution, known: MutableMapping[Key, Made]) -> str:
    record = new.record
    if new.idempotency_key is None:
        return record.execution_id
    key = (new.key_scope, new.idempotency_key)
    before = replayed(known.get(key), new.idempotency_key, new.request_hash, record.created_at)
    if before is not None:
        return before
    known[key] = Made(record.execution_id, new.request_hash, record.created_at)
    return record.execution_id


def replayed(made: Made | None, key: str, request_hash: str, now: float) -> str | None:
    """The execution that this request has made before.

    Raises `KeyReused` if it was another request.
    """
    if made is None or now - made.created_at >= KEY_SECONDS:
        return None
    if made.request_hash != request_hash:
        raise KeyReused(f"the idempotency key {key!r} was used for another request; use a new key")
    return made.execution_id
