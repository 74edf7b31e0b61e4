"""Blobs in an object store: S3 and what speaks its protocol, Google Cloud Storage, Azure.

    PENSTOCK_BLOBS=s3://bucket/folder

Credentials and the endpoint are read from the usual variables: `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, or from the role of the machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.engine.events import Blob
from penstock.errors import SettingsError, StoreError, StoreUnavailable
from penstock.stores.blobs import DirectoryBlobs

SCHEMES = ("s3", "gs", "az")
TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectBlobTiming:
    """How long calls to an object store may take, in whole seconds."""

    connect_seconds: int = 5
    """For a connection."""
    call_seconds: int = 30
    """For a call, with its value. It is tried again then."""


DEFAULT_BLOB_TIMING = ObjectBlobTiming()


class StoredObject(NamedTuple):
    key: str
    modified_at: float
    size: int


class ObjectBlobs:
    """Blobs in an object store: one object per value, named by its hash."""

    def __init__(self, url: str, timing: ObjectBlobTiming = DEFAULT_BLOB_TIMING) -> None:
        """Raises `SettingsError` for an address that can't be used.

        The object store isn't connected to yet.
        """
        self.url = url
        self._obstore, self._store = _open(url, timing)
        self._put_at: dict[str, float] = {}
        """When this process has last put each value, by key: then it isn't deleted as an old one.
        """
        self._deleting = asyncio.Lock()

    async def put(self, data: bytes) -> Blob:
        key = hashlib.sha256(data).hexdigest()
        self._put_at[key] = time.time()
        async with self._deleting if self._deleting.locked() else nullcontext():
            with self._errors("written"):
                await self._obstore.put_async(self._store, _path(key), data)
        return Blob(key, len(data))

    async def get(self, blob: Blob) -> bytes:
        data = await self.find(blob)
        if data is None:
            raise StoreError(f"the blob {blob.key} is gone from {self.url}")
        return data

    async def find(self, blob: Blob) -> bytes | None:
        """The value of a blob; None if it doesn't exist."""
        try:
            with self._errors("read"):
                response = await self._obstore.get_async(self._store, _path(blob.key))
                return bytes(await response.bytes_async())
        except FileNotFoundError:
            return None

    async def delete(self, blob: Blob) -> None:
        await self.delete_many([blob.key])

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Delete values; a missing one is no error."""
        if not keys:
            return
        with self._errors("deleted"):
            await self._obstore.delete_async(self._store, [_path(key) for key in keys])

    async def keys_before(self, before: float) -> set[str]:
        """Keys of values that were put before this time, and not again since."""
        self._put_at = {key: at for key, at in self._put_at.items() if at >= before}
        return {stored.key async for stored in self.objects() if stored.modified_at < before}

    async def delete_before(self, key: str, before: float) -> bool:
        """Delete a value unless this process has put it again since."""
        async with self._deleting:
            if self._put_at.get(key, before - 1) >= before:
                return False
            await self.delete_many([key])
            return True

    async def objects(self) -> AsyncIterator[StoredObject]:
        """All objects, in no order."""
        with self._errors("listed"):
            async for page in self._obstore.list(self._store):
                for meta in page:
                    key = meta["path"].rpartition("/")[2]
                    yield StoredObject(key, meta["last_modified"].timestamp(), meta["size"])

    async def check(self) -> None:
        """Raises `StoreUnavailable` or `SettingsError` if values can't be written and read here."""
        probe = b"penstock"
        try:
            blob = await self.put(probe)
            await self.get(blob)
        except FileNotFoundError as error:
            raise SettingsError(
                f"{self.url} can't be used for large values: {_first_line(error)}"
            ) from None

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        exceptions = self._obstore.exceptions
        try:
            yield
        except FileNotFoundError:
            raise
        except (
            exceptions.UnauthenticatedError,
            exceptions.PermissionDeniedError,
            PermissionError,
        ) as error:
            raise StoreUnavailable(
                f"large values can't be {done} in {self.url}: access is denied; "
                "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights on the bucket "
                f"({_first_line(error)})"
            ) from None
        except (exceptions.BaseError, OSError) as error:
            raise StoreUnavailable(
                f"large values can't be {done} in {self.url}: {_first_line(error)}"
            ) from None


class BlobsMovedToObjects:
    """Blobs in an object store, and older ones in a folder, from before PENSTOCK_BLOBS was set."""

    def __init__(self, objects: ObjectBlobs, before: DirectoryBlobs) -> None:
        self.objects = objects
        self._before = before

    async def put(self, data: bytes) -> Blob:
        return await self.objects.put(data)

    async def get(self, blob: Blob) -> bytes:
        data = await self.objects.find(blob)
        return await self._before.get(blob) if data is None else data

    async def delete(self, blob: Blob) -> None:
        await self.objects.delete(blob)
        await self._before.delete(blob)

    async def keys_before(self, before: float) -> set[str]:
        return await self.objects.keys_before(before) | await self._before.keys_before(before)

    async def delete_before(self, key: str, before: float) -> bool:
        deleted = await self.objects.delete_before(key, before)
        return await self._before.delete_before(key, before) or deleted


def is_object_store(blobs: str | None) -> bool:
    """Whether PENSTOCK_BLOBS names an object store, and not a folder."""
    return blobs is not None and "://" in blobs


def _open(url: str, timing: ObjectBlobTiming) -> tuple[Any, Any]:
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        schemes = ", ".join(f"{name}://…" for name in SCHEMES)
        raise SettingsError(
            f"PENSTOCK_BLOBS is {url!r}; use a folder, or an object store: {schemes}"
        )
    try:
        import obstore  # noqa: PLC0415 -- an extra
        import obstore.exceptions  # noqa: PLC0415
        import obstore.store  # noqa: PLC0415
    except ModuleNotFoundError:
        raise SettingsError(
            f"PENSTOCK_BLOBS is {url!r}, which needs obstore: pip install 'penstock[s3]'"
        ) from None
    options: Any = {
        # for an endpoint with http://, such as a server in the same network
        "allow_http": True,
        "timeout": f"{timing.call_seconds}s",
        "connect_timeout": f"{timing.connect_seconds}s",
    }
    try:
        store = obstore.store.from_url(
            url, client_options=options, retry_config={"max_retries": TRIES}
        )
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise SettingsError(
            f"PENSTOCK_BLOBS is {url!r}, which can't be used: {_first_line(error)}"
        ) from None
    return obstore, store


def _path(key: str) -> str:
    return f"{key[:2]}/{key}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
