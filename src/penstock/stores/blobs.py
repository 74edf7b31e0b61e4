"""Blobs: large values, stored apart from the records, so that those stay small."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.engine.events import Blob, Value
from penstock.errors import StoreError, StoreUnavailable
from penstock.stores.base import BlobStore


async def fetch_outputs(outputs: Mapping[str, Value], blobs: BlobStore) -> dict[str, bytes]:
    """Outputs as JSON text, wherever they are stored."""
    texts: dict[str, bytes] = {}
    for node_id, value in outputs.items():
        texts[node_id] = value if isinstance(value, bytes) else await blobs.get(value)
    return texts


class MemoryBlobs:
    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, data: bytes) -> Blob:
        key = hashlib.sha256(data).hexdigest()
        self._blobs[key] = data
        return Blob(key, len(data))

    async def get(self, blob: Blob) -> bytes:
        if blob.key not in self._blobs:
            raise StoreError(f"the blob {blob.key} is gone")
        return self._blobs[blob.key]

    async def delete(self, blob: Blob) -> None:
        self._blobs.pop(blob.key, None)


class DirectoryBlobs:
    """Blobs in a folder: one file per value, named by its hash."""

    def __init__(
        self, directory: Path, *older: Path, on_made: Callable[[], None] | None = None
    ) -> None:
        """`older` are folders that are only read. `on_made` is called when the folder was made."""
        self._directory = directory
        self._older = older
        self._on_made = on_made
        self._is_made = directory.is_dir()
        self._turn = threading.Lock()

    async def put(self, data: bytes) -> Blob:
        try:
            return await asyncio.to_thread(self._put, data)
        except OSError as error:
            raise StoreUnavailable(
                f"{self._directory} can't be written: {error.strerror}; it is tried again"
            ) from None

    async def get(self, blob: Blob) -> bytes:
        try:
            return await asyncio.to_thread(self._get, blob.key)
        except OSError as error:
            raise StoreUnavailable(
                f"{self._directory} can't be read: {error.strerror}; it is tried again"
            ) from None

    async def delete(self, blob: Blob) -> None:
        await asyncio.to_thread(self._path(blob.key).unlink, missing_ok=True)

    async def keys_before(self, before: float) -> set[str]:
        """Keys of values that were put before this time, and not again since."""
        return await asyncio.to_thread(self._keys_before, before)

    async def delete_before(self, key: str, before: float) -> bool:
        """Delete a value unless it has been put again since."""
        return await asyncio.to_thread(self._delete_before, key, before)

    def _keys_before(self, before: float) -> set[str]:
        files = [path for path in self._directory.glob("*/*") if not path.suffix]
        return {path.name for path in files if _put_at(path) < before}

    def _delete_before(self, key: str, before: float) -> bool:
        with self._turn:
            path = self._path(key)
            if not _put_at(path) < before:
                return False
            path.unlink(missing_ok=True)
            return True

    def _touch(self, path: Path) -> bool:
        """Let an existing value count as new, so that it isn't deleted; False if it's missing."""
        with self._turn:
            try:
                os.utime(path)
            except FileNotFoundError:
                return False
            return True

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / key

    def _get(self, key: str) -> bytes:
        for directory in (self._directory, *self._older):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                return (directory / key[:2] / key).read_bytes()
        raise StoreError(f"the blob {key} is gone from {self._directory}")

    def _put(self, data: bytes) -> Blob:
        key = hashlib.sha256(data).hexdigest()
        path = self._path(key)
        if not self._touch(path):
            self._make_directory()
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._write(path, data)
        return Blob(key, len(data))

    def _make_directory(self) -> None:
        """Make the folder, once: if it is lost later, a new one would hide that."""
        if self._is_made:
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._is_made = True
        if self._on_made is not None:
            self._on_made()

    def _write(self, path: Path, data: bytes) -> None:
        partial = path.with_suffix(f".{secrets.token_hex(4)}.part")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # a record that names it may be committed next
        partial.rename(path)
        _sync_directory(path.parent)


def _put_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _sync_directory(path: Path) -> None:
    """Write the folder to disk: a file's name must be there too, not only its content."""
    if sys.platform == "win32":
        return  # folders can't be opened on Windows, and needn't
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
