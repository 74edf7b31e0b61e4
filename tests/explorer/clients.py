"""What a client does: it sends the signal that a node waits for, at any time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from tests.explorer import deciding, judge, store
from tests.explorer.orchestrators import Step
from tests.explorer.world import World


def steps(world: World) -> Iterator[Step]:
    if may_send(world):
        yield "a client sends the signal", partial(send, world)


def may_send(world: World) -> bool:
    has_ended = world.cold.has_ended or judge.has_ended(world.store.execution)
    takes_signal = deciding.SHAPES[deciding.SHAPE].takes_signal
    return takes_signal and not world.cold.is_signalled and not has_ended


def send(world: World, *, arrives: bool = True) -> World:
    """Store it, and append it to the inbox."""
    world = replace(world, cold=replace(world.cold, is_signalled=True))
    if not arrives:
        return world
    return replace(world, store=store.append(world.store, deciding.SIGNAL))
