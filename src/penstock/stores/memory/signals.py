"""Signals in memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.engine.events import SignalReceived
from penstock.engine.states import EXECUTION_ENDS
from penstock.stores import codec
from penstock.stores.base import KEY_SECONDS, partition_of
from penstock.stores.signals import (
    Judge,
    NewSignal,
    StoredSignal,
    check_receiving,
    check_room,
    check_same,
    received,
)

if TYPE_CHECKING:
    from penstock.stores.memory.cold import MemoryExecutions


class MemorySignals:
    def __init__(self, executions: MemoryExecutions, partitions: int) -> None:
        self._executions = executions
        self._partitions = partitions
        self._stored: dict[str, list[bytes]] = {}
        """By execution, signals in the order of their numbers."""
        self._numbers: dict[tuple[str, str], int] = {}
        """By execution and idempotency key."""
        self._undelivered: set[tuple[str, int]] = set()

    async def put(
        self, signal: NewSignal, taken: int = 0, judge: Judge | None = None
    ) -> StoredSignal:
        execution_id = signal.execution_id
        state = self._executions.state_of(execution_id)
        waits = self._executions.is_waiting(execution_id)
        check_receiving(execution_id, state, waits=waits)
        stored = self._stored.setdefault(execution_id, [])
        key = (execution_id, signal.idempotency_key or "")
        known_number = self._numbers.get(key) if signal.idempotency_key is not None else None
        if known_number is not None:
            known = self._signal(stored[known_number - 1])
            if known.at > signal.at - KEY_SECONDS:
                check_same(signal, known.name, known.payload)
                return StoredSignal(known_number, is_new=False)
        check_room(execution_id, len(stored), taken)
        if judge is not None:
            earlier = map(self._signal, stored)
            judge([other for other in earlier if other.name == signal.name])
        number = len(stored) + 1
        stored.append(codec.encode(received(signal, number)))
        if signal.idempotency_key is not None:
            self._numbers[key] = number
        self._undelivered.add((execution_id, number))
        return StoredSignal(number, is_new=True)

    def put_once(self, signal: NewSignal) -> int | None:
        """Store a signal with an idempotency key; None if it is stored already."""
        stored = self._stored.setdefault(signal.execution_id, [])
        key = (signal.execution_id, signal.idempotency_key or "")
        if key in self._numbers:
            return None
        number = self._numbers[key] = len(stored) + 1
        stored.append(codec.encode(received(signal, number)))
        self._undelivered.add((signal.execution_id, number))
        return number

    async def of(self, execution_ids: Collection[str]) -> dict[str, list[SignalReceived]]:
        return {
            execution_id: [self._signal(data) for data in self._stored[execution_id]]
            for execution_id in execution_ids
            if self._stored.get(execution_id)
        }

    async def undelivered(self, partition: int) -> list[SignalReceived]:
        signals: list[SignalReceived] = []
        for execution_id, number in sorted(self._undelivered):
            has_ended = self._executions.state_of(execution_id) in EXECUTION_ENDS
            if has_ended or number in self._executions.copied_signals(execution_id):
                self._undelivered.discard((execution_id, number))
            elif partition_of(execution_id, self._partitions) == partition:
                signals.append(self._signal(self._stored[execution_id][number - 1]))
        return signals

    def forget(self, execution_ids: Collection[str]) -> None:
        for execution_id in execution_ids:
            self._stored.pop(execution_id, None)
        self._undelivered = {item for item in self._undelivered if item[0] in self._stored}
        self._numbers = {key: n for key, n in self._numbers.items() if key[0] in self._stored}

    @staticmethod
    def _signal(data: bytes) -> SignalReceived:
        event = codec.decode_event(data)
        assert isinstance(event, SignalReceived)  # noqa: S101 -- nothing else is stored here
        return event
