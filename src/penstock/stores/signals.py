"""Signals on their way into a store, and what every store refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from penstock.engine.events import SignalReceived
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import Conflict, KeyReused, NotFound, Overloaded

KEPT_MAX = 1000
"""Signals that an execution may have which no node has taken."""
BUSY_SECONDS = 5.0


class NewSignal(msgspec.Struct, kw_only=True):
    """A signal that somebody sends."""

    execution_id: str
    name: str
    payload: bytes
    """JSON text."""
    correlation: str | None = None
    sender: str = ""
    at: float
    idempotency_key: str | None = None
    """The scope and the key of the request: the same again stores nothing."""


Judge = Callable[[Sequence[SignalReceived]], None]
"""Given the signals of the same name that an execution has; what it raises refuses another one."""


class StoredSignal(NamedTuple):
    """The answer of a store to a new signal."""

    number: int
    is_new: bool
    """False: the request was known, and this is the number that it has got."""


def check_receiving(execution_id: str, state: str | None, *, waits: bool) -> None:
    """Raise if an execution can't receive signals; `state` is None for one that isn't there."""
    if state is None:
        raise NotFound(f"there is no execution {execution_id!r} in this store")
    if state in EXECUTION_ENDS:
        raise Conflict(f"execution {execution_id} is {state}; it can't receive signals any more")
    if waits:
        raise Conflict(f"execution {execution_id} hasn't been triggered; trigger it first")


def check_room(execution_id: str, stored: int, taken: int) -> None:
    """Raise if an execution has as many signals as it may have that no node has taken."""
    if stored - taken >= KEPT_MAX:
        raise Overloaded(
            f"execution {execution_id} has {KEPT_MAX:,} signals that no node has taken",
            retry_after=BUSY_SECONDS,
        )


def check_same(signal: NewSignal, name: str, payload: bytes) -> None:
    """Raise if an idempotency key comes back with another signal."""
    if (name, payload) != (signal.name, signal.payload):
        raise KeyReused("this Idempotency-Key was used for another signal to this execution")


def received(signal: NewSignal, number: int) -> SignalReceived:
    return SignalReceived(
        signal.execution_id,
        number,
        signal.name,
        signal.payload,
        signal.correlation,
        signal.sender,
        signal.at,
    )
