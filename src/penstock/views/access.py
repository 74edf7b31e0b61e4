"""Who may do what, and who did: callers, API keys, the audit log."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock.stores.records import ApiKey, AuditLine
from penstock.views.times import time_text


class Me(msgspec.Struct, kw_only=True):
    open: bool
    key_id: str | None
    name: str | None
    scopes: Annotated[list[str], Meta(description="All that this caller may use.")]


class ListedKey(msgspec.Struct, kw_only=True):
    id: str
    name: str
    scopes: list[str]
    created_at: str
    revoked_at: str | None = None


class CreatedKey(msgspec.Struct, kw_only=True):
    id: str
    name: str
    scopes: list[str]
    key: Annotated[str, Meta(description="Shown this once.")]


class AuditItem(msgspec.Struct, kw_only=True):
    id: int
    at: str
    key_id: str
    key_name: str
    action: str
    object: str
    address: str
    status: int
    detail: dict[str, Any]


def listed_key_view(key: ApiKey) -> ListedKey:
    return ListedKey(
        id=key.id,
        name=key.name,
        scopes=list(key.scopes),
        created_at=time_text(key.created_at),
        revoked_at=time_text(key.revoked_at),
    )


def created_key_view(key: ApiKey, token: str) -> CreatedKey:
    return CreatedKey(id=key.id, name=key.name, scopes=list(key.scopes), key=token)


def audit_view(line: AuditLine) -> AuditItem:
    return AuditItem(
        id=line.id,
        at=time_text(line.at),
        key_id=line.key_id,
        key_name=line.key_name,
        action=line.action,
        object=line.object,
        address=line.address,
        status=line.status,
        detail=line.detail,
    )
