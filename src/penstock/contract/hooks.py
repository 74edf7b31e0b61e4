"""Hooks: their newest deliveries, and messages that are handled once."""

import asyncio

from penstock.stores.base import Stores
from penstock.stores.hooks import (
    CLAIM_SECONDS,
    DELIVERIES_MAX,
    MESSAGE_SECONDS,
    REQUEST_SECONDS,
    Delivery,
    Handled,
    HookRow,
    MessageClaim,
)

MINE = MessageClaim(is_mine=True)
BUSY = MessageClaim(is_mine=False)
MESSAGE = bytes(range(32))
NOW = 1_700_000_000.25


def _hook(hook_id: str, at: float = NOW, document: bytes = b'{"\xc3\xa9": 1}') -> HookRow:
    return HookRow(hook_id, document, at, at)


def _delivery(hook_id: str = "a", at: float = NOW, **fields: object) -> Delivery:
    all_fields = {"status": 202, "outcome": "started", "request": b"\x00\xff", **fields}
    return Delivery(hook_id=hook_id, at=at, **all_fields)  # type: ignore[arg-type]


async def test_hooks_are_stored_listed_by_id_and_deleted(stores: Stores) -> None:
    hooks = stores.cold.hooks
    assert await hooks.hooks() == []
    for hook_id in ("b", "a"):
        assert await hooks.put(_hook(hook_id))

    assert await hooks.hooks() == [_hook("a"), _hook("b")]
    assert await hooks.get("a") == _hook("a")
    for unknown in ("c", "A", "", "half \ud800", "zero \x00"):
        assert await hooks.get(unknown) is None

    assert await hooks.delete("a")
    assert not await hooks.delete("a")
    assert await hooks.hooks() == [_hook("b")]


async def test_a_hook_that_is_stored_again_has_the_new_document_and_its_age(stores: Stores) -> None:
    hooks = stores.cold.hooks
    assert await hooks.put(_hook("a"))
    assert not await hooks.put(_hook("a", NOW + 5, b"{}"))
    assert await hooks.get("a") == HookRow("a", b"{}", NOW, NOW + 5)


async def test_deliveries_are_listed_newest_first_page_by_page(stores: Stores) -> None:
    hooks = stores.cold.hooks
    for hook_id in ("a", "b"):
        await hooks.put(_hook(hook_id))
    numbers: list[int] = []
    for i in range(5):
        number = await hooks.record(_delivery(at=NOW + i))
        assert number is not None
        numbers.append(number)
        await hooks.record(_delivery("b"))
    assert numbers == sorted(set(numbers))

    seen: list[int] = []
    before = None
    while page := await hooks.deliveries("a", NOW, before, 2):
        seen += [delivery.id for delivery in page]
        before = page[-1].id
        await hooks.record(_delivery())
    assert seen == numbers[::-1]
    assert await hooks.deliveries("c", NOW) == []


async def test_a_delivery_comes_back_as_it_was_written(stores: Stores) -> None:
    hooks = stores.cold.hooks
    await hooks.put(_hook("a"))
    delivery = _delivery(
        status=422, outcome="failed", detail="é \x00", execution_id="e1", redelivery_of=7
    )
    number = await hooks.record(delivery)
    assert number is not None
    delivery.id = number
    assert await hooks.deliveries("a", NOW) == [delivery]
    assert await hooks.delivery("a", number, NOW) == delivery
    assert await hooks.delivery("b", number, NOW) is None
    for unknown in (number + 1, 0, -1, 2**70):
        assert await hooks.delivery("a", unknown, NOW) is None


async def test_only_the_newest_deliveries_of_each_hook_stay(stores: Stores) -> None:
    hooks = stores.cold.hooks
    for hook_id in ("a", "b"):
        await hooks.put(_hook(hook_id))
    first_of_other = await hooks.record(_delivery("b"))
    numbers = [await hooks.record(_delivery()) for _ in range(DELIVERIES_MAX + 3)]

    listed = await hooks.deliveries("a", NOW, limit=2 * DELIVERIES_MAX)
    assert [delivery.id for delivery in listed] == numbers[:2:-1]
    assert [delivery.id for delivery in await hooks.deliveries("b", NOW)] == [first_of_other]


async def test_a_request_is_there_for_a_day_and_its_delivery_for_longer(stores: Stores) -> None:
    hooks = stores.cold.hooks
    await hooks.put(_hook("a"))
    old = await hooks.record(_delivery(at=NOW))
    young = await hooks.record(_delivery(at=NOW + 10))
    assert old is not None
    assert young is not None

    # shown or not, it is decided by its age, whether it was deleted or not
    later = NOW + REQUEST_SECONDS + 5
    for forgotten in (0, 1, 0):
        requests = [delivery.request for delivery in await hooks.deliveries("a", later)]
        assert requests == [b"\x00\xff", None]
        shown = await hooks.delivery("a", old, later)
        assert shown is not None
        assert shown.request is None
        if forgotten:
            assert await hooks.forget(later) == forgotten
    # it is gone, also for who believes that it is younger
    assert [delivery.request is None for delivery in await hooks.deliveries("a", NOW)] == [
        False,
        True,
    ]


async def test_a_message_is_claimed_once_and_has_the_same_answer_for_a_week(stores: Stores) -> None:
    hooks = stores.cold.hooks
    for hook_id in ("a", "b"):
        await hooks.put(_hook(hook_id))
    assert await hooks.claim("a", MESSAGE, NOW) == MINE
    assert await hooks.claim("a", MESSAGE, NOW + CLAIM_SECONDS) == BUSY
    # another hook, and another message
    assert await hooks.claim("b", MESSAGE, NOW) == MINE
    assert await hooks.claim("a", MESSAGE[::-1], NOW) == MINE

    await hooks.record(_delivery(), Handled(MESSAGE, b"answer \xff"))
    answered = MessageClaim(is_mine=False, answer=b"answer \xff")
    for later in (0.0, CLAIM_SECONDS + 1, MESSAGE_SECONDS):
        assert await hooks.claim("a", MESSAGE, NOW + later) == answered
        await hooks.forget(NOW + later)
        assert await hooks.claim("a", MESSAGE, NOW + later) == answered
    assert await hooks.claim("a", MESSAGE, NOW + MESSAGE_SECONDS + 1) == MINE
    assert await hooks.claim("a", MESSAGE, NOW + MESSAGE_SECONDS + 2) == BUSY


async def test_of_many_who_claim_a_message_at_once_one_gets_it(stores: Stores) -> None:
    hooks = stores.cold.hooks
    await hooks.put(_hook("a"))
    claims = await asyncio.gather(*(hooks.claim("a", MESSAGE, NOW + i) for i in range(10)))
    assert sorted(claims) == [BUSY] * 9 + [MINE]


async def test_a_claim_without_an_answer_ends(stores: Stores) -> None:
    hooks = stores.cold.hooks
    await hooks.put(_hook("a"))
    assert await hooks.claim("a", MESSAGE, NOW) == MINE
    later = NOW + CLAIM_SECONDS + 1
    claims = await asyncio.gather(*(hooks.claim("a", MESSAGE, later) for _ in range(5)))
    assert sorted(claims) == [BUSY] * 4 + [MINE]


async def test_a_claim_is_given_back_by_who_has_it(stores: Stores) -> None:
    hooks = stores.cold.hooks
    await hooks.put(_hook("a"))
    assert await hooks.claim("a", MESSAGE, NOW) == MINE
    await hooks.release("a", MESSAGE, NOW - 1)
    assert await hooks.claim("a", MESSAGE, NOW) == BUSY
    await hooks.release("a", MESSAGE, NOW)
    assert await hooks.claim("a", MESSAGE, NOW + 1) == MINE

    # an answer isn't given back
    await hooks.record(_delivery(), Handled(MESSAGE, b"answer"))
    await hooks.release("a", MESSAGE, NOW + 1)
    assert (await hooks.claim("a", MESSAGE, NOW + 2)).answer == b"answer"


async def test_a_hook_that_was_deleted_leaves_nothing_to_its_successor(stores: Stores) -> None:
    hooks = stores.cold.hooks
    await hooks.put(_hook("a"))
    await hooks.claim("a", MESSAGE, NOW)
    await hooks.record(_delivery(), Handled(MESSAGE, b"answer"))
    await hooks.delete("a")
    assert await hooks.record(_delivery()) is None

    await hooks.put(_hook("a"))
    assert await hooks.deliveries("a", NOW) == []
    assert await hooks.claim("a", MESSAGE, NOW) == MINE


async def test_old_messages_are_deleted(stores: Stores) -> None:
    hooks = stores.cold.hooks
    await hooks.put(_hook("a"))
    await hooks.claim("a", MESSAGE, NOW)
    await hooks.claim("a", MESSAGE[::-1], NOW + 10)
    later = NOW + MESSAGE_SECONDS + 5
    assert await hooks.forget(later) == 1
    assert await hooks.forget(later) == 0
