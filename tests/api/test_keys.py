"""Keys: how they are made, kept, checked and revoked."""

import asyncio
import hmac
from hashlib import sha256

import pytest

from penstock.errors import InvalidInput, StoreUnavailable
from penstock.service.keys import CACHE_SECONDS, MISS_SECONDS, SCOPES, Keys, includes
from penstock.stores.records import ApiKey
from tests.api.asgi import Cold
from tests.waiting import let_others_run


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def made(*scopes: str) -> tuple[Cold, Clock, Keys, ApiKey, str]:
    api_keys, clock = Cold(), Clock()
    keys = Keys(api_keys, clock)
    key, token = await keys.create("ci", scopes or ["submit"])
    return api_keys, clock, keys, key, token


@pytest.mark.fault("security", "where a key's secret can be found afterwards")
def test_a_key_is_shown_once_and_kept_as_a_hash():
    async def scenario() -> None:
        api_keys, _, keys, key, token = await made()
        prefix, key_id, secret = token.split("_", 2)
        assert (prefix, key_id, len(key_id), len(secret)) == ("pk", key.id, 12, 43)
        assert api_keys.keys_by_id[key.id].hash == sha256(secret.encode()).digest()
        assert secret not in repr(api_keys.keys_by_id)
        assert await keys.check(token) == key

    asyncio.run(scenario())


def test_no_two_keys_are_alike():
    async def scenario() -> None:
        _, _, keys, _, _ = await made()
        tokens = [(await keys.create("more", ["read"]))[1] for _ in range(50)]
        assert len({token.split("_", 2)[1] for token in tokens}) == 50
        assert len({token.split("_", 2)[2] for token in tokens}) == 50

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "scopes"),
    [
        ("a", []),
        ("a", ["write"]),
        ("a", ["read", "root"]),
        ("", ["read"]),
        ("  ", ["read"]),
        ("a\nb", ["read"]),
        ("a\x1b[31m", ["read"]),
        ("x" * 201, ["read"]),
    ],
)
def test_what_a_key_can_not_be(name, scopes):
    async def scenario() -> None:
        api_keys = Cold()
        with pytest.raises(InvalidInput):
            await Keys(api_keys).create(name, scopes)
        assert not api_keys.keys_by_id

    asyncio.run(scenario())


def test_each_scope_includes_those_before_it():
    for rank, granted in enumerate(SCOPES):
        assert [includes((granted,), needed) for needed in SCOPES] == [
            rank >= other for other in range(len(SCOPES))
        ]
    assert includes(["read", "operate"], "submit")
    assert not includes([], "read")
    assert SCOPES == ("read", "submit", "approve", "operate", "admin")


def changed(token: str, at: int) -> str:
    other = "A" if token[at] != "A" else "B"
    return token[:at] + other + token[at + 1 :]


def wrong_tokens(token: str) -> list[str]:
    other = "0" * 12 if token[3:15] != "0" * 12 else "1" * 12
    return [
        "",
        "pk_",
        "x",
        token + "x",
        token[:-1],
        token.upper(),
        token.replace("pk_", "sk_"),
        changed(token, 20),
        f"pk_{other}_{token[16:]}",
        f" {token}",
        f"{token}\n",
        "pk_" + "é" * 12 + token[15:],
        "\udcff",
        "x" * 100_000,
        token[16:],
        token[:15],
    ]


def test_only_the_whole_key_is_good():
    async def scenario() -> None:
        _, _, keys, key, token = await made()
        for wrong in wrong_tokens(token):
            assert await keys.check(wrong) is None, wrong
        assert await keys.check(token) == key

    asyncio.run(scenario())


@pytest.mark.fault("security", "the comparison of API keys, including unknown ones")
def test_every_key_is_compared_in_constant_time_also_one_that_there_is_not(monkeypatch):
    async def scenario() -> None:
        _, _, keys, key, token = await made()
        await keys.check(token)
        compared: list[tuple[bytes, bytes]] = []
        real = hmac.compare_digest

        def compare(left: bytes, right: bytes) -> bool:
            compared.append((left, right))
            return real(left, right)

        monkeypatch.setattr("hmac.compare_digest", compare)
        for wrong in wrong_tokens(token):
            compared.clear()
            await keys.check(wrong)
            assert [(len(first), len(second)) for first, second in compared] == [(32, 32)]
        await keys.revoke(key.id)
        compared.clear()
        assert await keys.check(token) is None
        assert len(compared) == 1

    asyncio.run(scenario())


def test_wrong_unknown_and_revoked_keys_read_the_store_equally_often():
    async def scenario() -> None:
        api_keys, clock, keys, _, token = await made()
        _, revoked = await keys.create("old", ["admin"])
        await keys.revoke(revoked.split("_")[1])
        for wrong in [*wrong_tokens(token), revoked]:
            clock.now += MISS_SECONDS
            before = api_keys.reads
            await keys.check(wrong)
            await keys.check(wrong)
            assert api_keys.reads == before + 1, wrong

    asyncio.run(scenario())


def test_a_key_in_use_costs_a_read_every_few_seconds():
    async def scenario() -> None:
        api_keys, clock, keys, _, token = await made()
        for _ in range(100):
            await keys.check(token)
        assert api_keys.reads == 1
        clock.now += CACHE_SECONDS
        for _ in range(100):
            await keys.check(token)
        assert api_keys.reads == 2

    asyncio.run(scenario())


def test_requests_that_come_together_share_a_read():
    async def scenario() -> None:
        api_keys, _, keys, key, token = await made()
        assert await asyncio.gather(*[keys.check(token) for _ in range(50)]) == [key] * 50
        assert api_keys.reads == 1

    asyncio.run(scenario())


def test_a_key_revoked_here_stops_at_once():
    async def scenario() -> None:
        _, _, keys, key, token = await made()
        assert await keys.check(token)
        assert await keys.revoke(key.id)
        assert await keys.check(token) is None
        assert not await keys.revoke(key.id)
        assert not await keys.revoke("nobody")

    asyncio.run(scenario())


def test_a_key_revoked_by_another_process_stops_within_seconds():
    async def scenario() -> None:
        api_keys, clock, keys, key, token = await made()
        assert await keys.check(token)
        await api_keys.revoke_key(key.id, 1.0)
        clock.now += CACHE_SECONDS
        assert await keys.check(token) is None

    asyncio.run(scenario())


def test_a_read_from_before_a_revocation_does_not_bring_the_key_back():
    async def scenario() -> None:
        api_keys, _, keys, key, token = await made()
        api_keys.gate = slow = asyncio.Event()
        early = asyncio.create_task(keys.check(token))
        await let_others_run()
        api_keys.gate = None
        await keys.revoke(key.id)
        assert await keys.check(token) is None
        slow.set()
        await early
        assert await keys.check(token) is None

    asyncio.run(scenario())


def test_a_key_made_by_another_process_works_at_once():
    async def scenario() -> None:
        api_keys, clock, keys, _, token = await made()
        assert await keys.check(token)
        clock.now += MISS_SECONDS
        key, new = await Keys(api_keys).create("late", ["read"])
        assert await keys.check(new) == key

    asyncio.run(scenario())


def test_a_store_that_fails_lets_nobody_in_and_is_asked_again():
    async def scenario() -> None:
        api_keys, clock, keys, key, token = await made()
        assert await keys.check(token)
        clock.now += CACHE_SECONDS
        api_keys.failure = StoreUnavailable("away")
        with pytest.raises(StoreUnavailable):
            await keys.check(token)
        api_keys.failure = None
        assert await keys.check(token) == key

    asyncio.run(scenario())


def test_any_counts_keys_that_still_work():
    async def scenario() -> None:
        keys = Keys(Cold())
        assert not await keys.any()
        key, _ = await keys.create("one", ["read"])
        assert await keys.any()
        await keys.revoke(key.id)
        assert not await keys.any()
        assert [listed.id for listed in await keys.list()] == [key.id]

    asyncio.run(scenario())
