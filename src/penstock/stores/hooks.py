"""Hooks, what was delivered to them, and which messages they have had."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

DELIVERIES_MAX = 200
"""Deliveries of a hook that are listed: the newest."""
REQUEST_SECONDS = 86400.0
"""How long the request of a delivery is stored."""
MESSAGE_SECONDS = 7 * 86400.0
"""How long a message is known: the same one gets the same answer."""
CLAIM_SECONDS = 60.0
"""How long a message belongs to who has claimed it and hasn't answered."""


class HookRow(msgspec.Struct):
    id: str
    document: bytes
    """JSON text. It names secrets, and holds none."""
    created_at: float
    updated_at: float


class Delivery(msgspec.Struct, kw_only=True):
    """A request to a hook, and what became of it."""

    id: int = 0
    """Given by the store, in the order of deliveries."""
    hook_id: str
    at: float
    status: int
    """Of the answer."""
    outcome: str
    detail: str = ""
    execution_id: str | None = None
    redelivery_of: int | None = None
    request: bytes | None = None
    """What is needed to deliver it again (msgpack); None once it is too old."""


class MessageClaim(NamedTuple):
    """The result of claiming a message."""

    is_mine: bool
    """It is new, or whoever had claimed it didn't come back in time."""
    answer: bytes | None = None
    """The answer that it has got; None while somebody else is at work on it."""


class Handled(NamedTuple):
    """The answer of a message that was claimed, which is written with its delivery."""

    message: bytes
    answer: bytes


def is_free(claimed_at: float, now: float, *, is_answered: bool) -> bool:
    """Whether a message that was claimed before may be claimed again."""
    seconds = MESSAGE_SECONDS if is_answered else CLAIM_SECONDS
    return now - claimed_at > seconds


def without_old_request(delivery: Delivery, now: float) -> Delivery:
    """A delivery as it is shown: a request that is too old may not have been deleted yet."""
    if now - delivery.at > REQUEST_SECONDS:
        delivery.request = None
    return delivery
