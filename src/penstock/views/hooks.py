"""Hooks and their deliveries, as users see them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.stores.hooks import Delivery, HookRow
from penstock.views.times import time_text

Outcome = Literal["started", "signalled", "skipped", "challenge", "failed"]


class HookItem(msgspec.Struct, kw_only=True):
    id: str
    path: Annotated[str, Meta(description="Where the sender sends its requests to.")]
    document: Annotated[Any, Meta(description="The hook as it was stored.")]
    created_at: str
    updated_at: str


class StoredHook(HookItem, kw_only=True):
    """The answer to a hook that was stored."""

    created: Annotated[bool, Meta(description="Whether there was none with this id.")]


class DeliveryItem(msgspec.Struct, kw_only=True):
    """A request that was signed, and what became of it."""

    id: int
    at: str
    status: Annotated[int, Meta(description="The HTTP status that it was answered with.")]
    outcome: Outcome
    detail: Annotated[str, Meta(description="What was wrong, or why it was skipped.")]
    execution_id: str | None
    redelivery_of: int | None
    headers: Annotated[
        dict[str, str] | None,
        Meta(description="Without credentials. Null, as the next two, after a day."),
    ]
    query: dict[str, str] | None
    body: Any


class HookAnswer(msgspec.Struct, kw_only=True):
    """The answer to a request that a hook has accepted: it is stored."""

    execution_id: Annotated[
        str | UnsetType,
        Meta(description="The execution that it started, or the first it signalled."),
    ] = UNSET
    signalled: Annotated[
        int | UnsetType, Meta(description="How many executions got the signal at once.")
    ] = UNSET
    skipped: Annotated[
        Literal["filter"] | UnsetType, Meta(description="The hook's filter doesn't want it.")
    ] = UNSET
    state: Annotated[
        str | UnsetType, Meta(description="With `answer.wait_seconds`: how it has ended.")
    ] = UNSET
    output: Any = UNSET
    challenge: str | UnsetType = UNSET


class HookTrial(msgspec.Struct, kw_only=True):
    """What a hook would do with a request; nothing was done."""

    outcome: Literal["started", "signalled", "skipped", "failed"]
    detail: str
    message: Annotated[
        str | None, Meta(description="The name of the message, by which it is handled once.")
    ]
    input: Any
    labels: dict[str, Any]
    correlation: str | None
    payload: Any


class StoredRequest(msgspec.Struct, kw_only=True):
    """The request of a delivery, without anything secret."""

    headers: dict[str, str]
    query: dict[str, str]
    body: bytes
    """JSON text."""


_requests = msgspec.msgpack.Decoder(StoredRequest)


def stored_request(data: bytes) -> StoredRequest:
    return _requests.decode(data)


def hook_path(hook_id: str) -> str:
    return f"/hooks/{hook_id}"


def hook_view(row: HookRow) -> HookItem:
    return HookItem(
        id=row.id,
        path=hook_path(row.id),
        document=msgspec.json.decode(row.document),
        created_at=time_text(row.created_at),
        updated_at=time_text(row.updated_at),
    )


def stored_hook_view(row: HookRow, *, created: bool) -> StoredHook:
    return StoredHook(
        id=row.id,
        path=hook_path(row.id),
        document=msgspec.json.decode(row.document),
        created_at=time_text(row.created_at),
        updated_at=time_text(row.updated_at),
        created=created,
    )


def delivery_view(delivery: Delivery) -> DeliveryItem:
    request = None if delivery.request is None else stored_request(delivery.request)
    return DeliveryItem(
        id=delivery.id,
        at=time_text(delivery.at),
        status=delivery.status,
        outcome=delivery.outcome,  # type: ignore[arg-type]  # written by service.hooks
        detail=delivery.detail,
        execution_id=delivery.execution_id,
        redelivery_of=delivery.redelivery_of,
        headers=request.headers if request else None,
        query=request.query if request else None,
        body=msgspec.json.decode(request.body) if request else None,
    )
