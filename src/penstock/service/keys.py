"""API keys: a token is shown once, when its key is created, and stored as a hash.

A token is `pk_<id>_<secret>`. The id is no secret: lists and the audit log show it. Of the secret
only its SHA-256 is stored. The secret has 256 random bits, so a slow hash would protect it no
better than a fast one.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from hashlib import sha256
from typing import get_args

from penstock.errors import InvalidInput, StoreError
from penstock.stores.cold import ApiKeys as KeyStore
from penstock.stores.records import ApiKey, Scope

SCOPES: tuple[Scope, ...] = get_args(Scope)
"""The scopes of keys. Each includes those before it: a key that may submit may also read."""
CACHE_SECONDS = 2.0
"""How long keys are cached.

A key that another process revoked works for this long at most; one revoked here stops at once.
"""
MISS_SECONDS = 0.1
"""How often the store is read for unknown keys: another process may just have created one."""
PATIENCE_SECONDS = 1.0
"""How long `exist` waits for a store that doesn't answer."""
NAME_LENGTH = 200

_TOKEN = re.compile(r"pk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NOBODY = bytes(32)


def includes(granted: Collection[Scope], needed: Scope) -> bool:
    least = SCOPES.index(needed)
    return any(SCOPES.index(scope) >= least for scope in granted)


def check_key(name: str, scopes: Collection[str]) -> None:
    """Check a new key's name and scopes. Raises `InvalidInput`."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        problem = f"not {unknown[0]!r}" if unknown else "at least one"
        raise InvalidInput(
            f"scopes: {problem}; there are {', '.join(SCOPES)}, each including those before it"
        )
    if not name.strip() or len(name) > NAME_LENGTH or _CONTROL.search(name):
        raise InvalidInput(
            f"name: a text of 1 to {NAME_LENGTH} characters without control characters"
        )


def _make_key(name: str, scopes: Collection[str], now: float) -> tuple[ApiKey, str]:
    check_key(name, scopes)
    key_id = secrets.token_hex(6)
    secret = secrets.token_urlsafe(32)
    ordered = tuple(scope for scope in SCOPES if scope in scopes)
    key = ApiKey(key_id, name.strip(), ordered, _hash(secret), now)
    return key, f"pk_{key_id}_{secret}"


def _hash(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()


class Keys:
    """The keys of a store, all of them in memory: a request that brings one costs no read."""

    def __init__(self, store: KeyStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._keys: dict[str, ApiKey] = {}
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._changes = 0
        self._was_read = False
        self._silent: asyncio.Task[None] | None = None
        """The read that somebody has waited for in vain already."""

    async def create(self, name: str, scopes: Collection[str]) -> tuple[ApiKey, str]:
        """Create a key; answers it and its token, which is shown now or never."""
        key, token = _make_key(name, scopes, time.time())
        await self._store.put_key(key)
        self._forget()
        return key, token

    async def list(self) -> list[ApiKey]:
        return await self._store.keys()

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key; False if there is no such key, or it was revoked before."""
        done = await self._store.revoke_key(key_id, time.time())
        self._forget()
        return done

    async def any(self) -> bool:
        return any(key.revoked_at is None for key in await self._store.keys())

    async def exist(self) -> bool:
        """Whether this store has ever had a key.

        A revoked key counts, so a service that once required keys never stops requiring them. While
        the store is unavailable or doesn't answer, the last answer counts.
        """
        if not self._was_read:
            await self._read()
        elif self._clock() - self._read_at >= CACHE_SECONDS:
            await self._read_patiently()
        return bool(self._keys)

    async def _read_patiently(self) -> None:
        """Read the keys; if the store doesn't answer, only the first caller waits for it."""
        reading = self._begin_read()
        if reading is not self._silent:
            with suppress(StoreError, TimeoutError):
                self._silent = reading
                await asyncio.wait_for(asyncio.shield(reading), PATIENCE_SECONDS)

    async def check(self, token: str) -> ApiKey | None:
        """The key of a token, or None.

        Unknown, revoked, malformed and wrong tokens are handled the same way, so that a caller
        can't tell one from another.
        """
        if self._clock() - self._read_at >= CACHE_SECONDS:
            await self._read()
        key = self._match(token)
        if key is None and self._clock() - self._read_at >= MISS_SECONDS:
            await self._read()
            key = self._match(token)
        return key

    def _match(self, token: str) -> ApiKey | None:
        parts = _TOKEN.fullmatch(token)
        key_id, secret = parts.groups() if parts else ("", token)
        key = self._keys.get(key_id)
        same = hmac.compare_digest(_hash(secret), key.hash if key else _NOBODY)
        return key if same and key is not None and key.revoked_at is None else None

    async def _read(self) -> None:
        """Read the keys; requests that come meanwhile wait for the same read."""
        await asyncio.shield(self._begin_read())

    def _begin_read(self) -> asyncio.Task[None]:
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all(self._changes))
        return self._reading

    async def _read_all(self, changes: int) -> None:
        began = self._clock()
        try:
            keys = {key.id: key for key in await self._store.keys()}
        finally:
            if changes == self._changes:
                self._reading = None
        if changes == self._changes:
            self._keys = keys
            self._read_at = began
            self._was_read = True

    def _forget(self) -> None:
        """Forget the keys in memory, and those being read now: they may be outdated."""
        self._read_at = float("-inf")
        self._reading = None
        self._changes += 1
