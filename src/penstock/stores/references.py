"""What a reference to a workflow means: a `name`, `name@3`, `name@latest` or `name@stable`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from zlib import crc32

from penstock.errors import NotFound
from penstock.stores.records import LATEST, Weights

if TYPE_CHECKING:
    from penstock.stores.cold import Definitions

VERSION_DIGITS_MAX = len(str(2**62))
ReadTarget = Callable[[str, str], Awaitable[Weights | None]]
"""Answers the versions that a name and a tag mean."""


async def meaning(read: ReadTarget, reference: str) -> tuple[str, Weights]:
    """The name and the versions that a reference means. A name may contain an @.

    Raises `NotFound`.
    """
    name, at, tag = reference.rpartition("@")
    if at and name:
        weights = await read(name, tag)
        if weights:
            return name, weights
    weights = await read(reference, LATEST)
    if weights:
        return reference, weights
    if at and name and await read(name, LATEST):
        raise NotFound(f"the workflow {name!r} has no version or alias {tag!r}")
    raise NotFound(f"there is no workflow {reference!r} in this store")


async def find(definitions: Definitions, reference: str, execution_id: str) -> tuple[str, int]:
    """The name and the version that a reference means for this execution. Raises `NotFound`."""

    async def read(name: str, tag: str) -> Weights | None:
        return await read_target(definitions, name, tag)

    name, weights = await meaning(read, reference)
    return name, choose(weights, execution_id)


async def read_target(definitions: Definitions, name: str, tag: str) -> Weights | None:
    """The versions that a name and a tag mean; None if there is none."""
    if tag == LATEST:
        newest = await definitions.get_workflow(name)
        return {newest.version: 100} if newest else None

    if tag.isascii() and tag.isdecimal():
        if len(tag) > VERSION_DIGITS_MAX:
            return None
        version = int(tag)
        for stored in await definitions.versions(name):  # deleted ones aren't among them
            if stored.version == version:
                return {version: 100}
        return None

    aliases = await definitions.aliases(name)
    return aliases.get(tag)


def choose(weights: Weights, execution_id: str) -> int:
    """Choose a version by the weights; the same one for the same id."""
    if len(weights) == 1:
        return next(iter(weights))
    remainder = crc32(execution_id.encode()) % sum(weights.values())
    for version in sorted(weights):
        remainder -= weights[version]
        if remainder < 0:
            return version
    raise AssertionError("the shares add up")
