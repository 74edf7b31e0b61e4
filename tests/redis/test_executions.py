"""What Redis has of an execution is read as ours, or refused."""

import asyncio

import pytest

from penstock.contract.facts import record
from penstock.errors import SchemaMismatch
from penstock.stores import codec
from penstock.stores.redis import keys
from penstock.stores.redis.hot import stored_since
from tests.redis.stores_under_test import NAME, open_stores

WITHOUT_A_RECORD = codec.encode(codec.Change(codec.SCHEMA, None, [], {}, []))
OF_A_NEWER_VERSION = codec.encode(codec.Change(99, record(NAME), [], {}, []))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (WITHOUT_A_RECORD, "no beginning"),
        (OF_A_NEWER_VERSION, "schema 99"),
        (b"another program", "can't be read"),
    ],
    ids=["no record", "newer", "garbage"],
)
def test_changes_that_are_not_ours_or_have_no_beginning_are_refused(
    change: bytes, why: str
) -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.call("RPUSH", keys.execution(0, NAME), change)
            with pytest.raises(SchemaMismatch, match=why):
                await stores.hot.load([NAME])
            with pytest.raises(SchemaMismatch, match=why):
                stored_since(NAME, [change], 0)

    asyncio.run(scenario())


def test_what_is_too_much_for_one_answer_comes_in_several() -> None:
    names = [f"execution-{n}" for n in range(10)]

    async def scenario() -> None:
        async with open_stores(read_bytes=2000) as stores:
            for n, name in enumerate(names[:-1]):
                await stores.call("RPUSH", keys.execution(0, name), *[bytes([n]) * 500] * 3)
            answered = await stores.server.ask_script(0, "read", "changes", 2000, *names)
            assert len(answered) == 2  # the second has gone beyond the limit
            changes = await stores.hot.changes(names)
            assert changes == {name: [bytes([n]) * 500] * 3 for n, name in enumerate(names[:-1])}

    asyncio.run(scenario())
