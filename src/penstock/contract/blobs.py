"""Blobs: large values that are stored separately."""

import asyncio

import pytest

from penstock.engine.events import Blob
from penstock.errors import StoreError
from penstock.stores.base import Stores

VALUES = (b"", b"{}", bytes(range(256)), b"x" * 5_000_000)


async def test_a_value_comes_back_as_it_was_put(stores: Stores) -> None:
    blobs = [await stores.blobs.put(value) for value in VALUES]
    assert [blob.size for blob in blobs] == [len(value) for value in VALUES]
    assert len({blob.key for blob in blobs}) == len(VALUES)
    assert [await stores.blobs.get(blob) for blob in blobs] == list(VALUES)


async def test_a_value_may_be_put_by_many_at_once(stores: Stores) -> None:
    """A fan of nodes with the same large output does this."""
    for round_number in range(10):
        value = bytes([round_number]) * 300_000
        blobs = await asyncio.gather(*(stores.blobs.put(value) for _ in range(8)))
        assert [await stores.blobs.get(blob) for blob in blobs] == [value] * 8


async def test_a_missing_value_is_a_store_error_that_names_it(stores: Stores) -> None:
    with pytest.raises(StoreError, match="abcdef"):
        await stores.blobs.get(Blob("abcdef", 3))


async def test_a_deleted_value_is_gone_and_can_be_deleted_again(stores: Stores) -> None:
    referenced = await stores.blobs.put(b"kept")
    unreferenced = await stores.blobs.put(b"dropped")
    for _ in range(2):
        await stores.blobs.delete(unreferenced)
    with pytest.raises(StoreError):
        await stores.blobs.get(unreferenced)
    assert await stores.blobs.get(referenced) == b"kept"
