"""Blobs: large values that are stored separately."""

import asyncio

import pytest

from penstock.engine.events import Blob
from penstock.errors import StoreError
from penstock.stores.base import Stores

VALUES = (b"", b"{}", bytes(range(256)), b"x" * 5_000_000)


async def test_a_value_comes_back_as_it_was_put(stores: Stores) -> None:
    blobs = [await stores.blobs.put(value) for value in VALUES]
    keys = {blob.key for blob in blobs}
    assert len(keys) == len(VALUES)

    for blob, value in zip(blobs, VALUES, strict=True):
        assert blob.size == len(value)
        stored_value = await stores.blobs.get(blob)
        assert stored_value == value


async def test_a_value_may_be_put_by_many_at_once(stores: Stores) -> None:
    """A fan of nodes with the same large output does this."""
    for round_number in range(10):
        value = bytes([round_number]) * 300_000
        puts = [stores.blobs.put(value) for _ in range(8)]
        blobs = await asyncio.gather(*puts)
        for blob in blobs:
            stored_value = await stores.blobs.get(blob)
            assert stored_value == value


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
    value = await stores.blobs.get(referenced)
    assert value == b"kept"
