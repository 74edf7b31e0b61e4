"""A page of a list."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

Item = TypeVar("Item")


class Page(msgspec.Struct, Generic[Item]):
    items: list[Item]
    next_cursor: str | None = None
