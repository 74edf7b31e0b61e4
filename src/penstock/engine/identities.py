"""Identities of items: what they are recognised by, wherever they stand in the list."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from penstock.definition.config import Config
from penstock.definition.plan import RegionPlan
from penstock.definition.template import Missing

HASH_CHARACTERS = 16


class DuplicateKey(Exception):
    """Two items have one key. Its text is shown to the user."""


class _Item:
    """A scope with nothing but an item in it."""

    def __init__(self, plan: RegionPlan, value: msgspec.Raw, index: int) -> None:
        self.execution: dict[str, str] = {}
        self.input: dict[str, str] = {}
        self._values = {
            plan.item_name: msgspec.json.decode(value),
            plan.index_name: index,
        }

    def output(self, node_id: str) -> object:
        return self._values[node_id]

    def aliases(self, _node_id: str) -> dict[str, str]:
        return {}

    def outcome(self, name: str) -> dict[str, Any]:
        raise Missing(f"the key of an item can't depend on how {name!r} has ended")

    @property
    def ending(self) -> dict[str, Any]:
        raise Missing("the key of an item can't depend on how the execution ends")


class Identities:
    """The identities of the items of one map, as far as somebody has asked.

    They stay when the list is let go of: to work them all out again takes longer than to read it.
    """

    def __init__(self, plan: RegionPlan) -> None:
        self._plan = plan
        self._known: list[str] = []
        self._times: dict[str, int] = {}
        """How often each hash has come."""

    def at(self, index: int, values: list[msgspec.Raw]) -> str:
        """The identity of an item of the list. Raises `Missing` and `DuplicateKey` for bad keys."""
        if self._plan.key is not None and not self._known:
            self._known = _keys(self._plan.key, self._plan, values)
        while len(self._known) <= index:
            identity = hash_of(values[len(self._known)])
            times = self._times.get(identity, 0) + 1
            self._times[identity] = times
            self._known.append(identity if times == 1 else f"{identity}~{times}")
        return self._known[index]


def identities_of(plan: RegionPlan, values: list[msgspec.Raw]) -> list[str]:
    """The identities of all items. Raises `Missing` and `DuplicateKey` for bad keys."""
    identities = Identities(plan)
    return [identities.at(index, values) for index in range(len(values))]


def _keys(key: Config, plan: RegionPlan, values: list[msgspec.Raw]) -> list[str]:
    indexes: dict[str, int] = {}
    for index, value in enumerate(values):
        try:
            resolved, _ = key.resolve(_Item(plan, value, index))
        except Missing as error:
            raise Missing(f"the key of item {index}: {error}") from None
        text = resolved["key"]
        if not isinstance(text, str):
            text = msgspec.json.encode(text, order="sorted").decode()
        if text in indexes:
            raise DuplicateKey(
                f"items {indexes[text]} and {index} have the same key {text!r:.100} (duplicate_key)"
            )
        indexes[text] = index
    return list(indexes)


def hash_of(value: msgspec.Raw) -> str:
    canonical = msgspec.json.encode(msgspec.json.decode(value), order="sorted")
    return hashlib.sha256(canonical).hexdigest()[:HASH_CHARACTERS]
