"""Signals: sending them to executions, and what became of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from penstock.definition.problems import Problem
from penstock.definition.schema import lines_of, schema_problems
from penstock.definition.waits import (
    OWN_MARK,
    BadWait,
    SignalConfig,
    check_correlation,
    check_signal_name,
)
from penstock.engine.commands import NodeRun
from penstock.engine.events import SignalReceived
from penstock.engine.mailbox import taken_signals
from penstock.engine.states import EXECUTION_ENDS, NodeState
from penstock.engine.waiting import awaited_by, fits
from penstock.errors import InvalidInput, PenstockError, StoreError
from penstock.service.executions import Executions
from penstock.stores.base import Stored, Stores
from penstock.stores.posts import Post, awaited
from penstock.stores.signals import Judge, NewSignal, check_receiving, received
from penstock.stores.waits import WaitSearch
from penstock.views.signals import (
    PostedSignal,
    SentSignal,
    SignalItem,
    SignalState,
    WaitItem,
    signal_item,
    wait_item,
)

log = logging.getLogger("penstock.service")

PAYLOAD_BYTES_MAX = 256 * 1024
TTL_SECONDS = 86400.0
"""How long a signal by correlation is kept for nodes that begin to wait later."""
TTL_SECONDS_MAX = 30 * 86400.0


class Signals:
    """Sends signals to executions, and lists them."""

    def __init__(self, stores: Stores, executions: Executions) -> None:
        self._stores = stores
        self._executions = executions

    async def send(  # noqa: PLR0913 -- what a signal has
        self,
        execution_id: str,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        sender: str = "",
        idempotency_key: str | None = None,
    ) -> SentSignal:
        """Store a signal, and deliver it: once this has answered, it isn't lost.

        Raises `NotFound`, `Conflict` if the execution has ended, `Overloaded`, or `InvalidInput` if
        nothing can have this name, or the node that waits for it wants another payload.
        """
        self._stores.hot.check_open()
        signal = NewSignal(
            execution_id=execution_id,
            name=name,
            payload=encoded_payload(payload),
            correlation=correlation,
            sender=sender,
            at=self._stores.hot.now(),
            idempotency_key=idempotency_key,
        )
        _check_names(name, correlation)
        stored = await self._executions.stored(execution_id)
        # the cold store may hear of the end a moment later
        check_receiving(execution_id, str(stored.record.state), waits=False)
        is_awaited = _check_fits(stored, received(signal, 0))
        number = await self.store(signal, stored)
        state: SignalState = "taken" if is_awaited else "kept"
        return SentSignal(execution_id=execution_id, number=number, state=state)

    async def store(self, signal: NewSignal, stored: Stored, judge: Judge | None = None) -> int:
        """Store a signal to this execution, and deliver it. Answers its number."""
        taken = len(taken_signals(stored.runs.values()))
        number, _ = await self._stores.cold.signals.put(signal, taken, judge)
        await self._deliver(received(signal, number))
        return number

    async def post(  # noqa: PLR0913 -- what a signal has
        self,
        name: str,
        correlation: str,
        payload: Any = None,
        *,
        ttl_seconds: float = TTL_SECONDS,
        to_all: bool = False,
        sender: str = "",
    ) -> PostedSignal:
        """Send a signal to whoever waits for its name and correlation, now or until it expires.

        Raises `InvalidInput`.
        """
        self._stores.hot.check_open()
        _check_names(name, correlation)
        if not 0 < ttl_seconds <= TTL_SECONDS_MAX:
            raise InvalidInput(f"ttl_seconds must be above 0, and {TTL_SECONDS_MAX:,.0f} at most")
        now = self._stores.hot.now()
        encoded = encoded_payload(payload)
        post = Post(name, correlation, encoded, sender, now, now + ttl_seconds, to_all)
        return await self._put(post)

    async def offer(
        self, name: str, correlation: str, payload: Any, sender: str = ""
    ) -> PostedSignal:
        """Send a signal to the first who waits for its name and correlation now, if anybody does.

        As `post`, but it isn't kept for nodes that begin to wait later. Raises `InvalidInput`.
        """
        self._stores.hot.check_open()
        _check_names(name, correlation)
        now = self._stores.hot.now()
        # expired from the beginning
        post = Post(name, correlation, encoded_payload(payload), sender, now, 0.0)
        posted = await self._put(post)
        return PostedSignal(delivered=posted.delivered, is_kept=False)

    async def _put(self, post: Post) -> PostedSignal:
        signals, is_kept = await self._stores.cold.posts.put(post)
        sent: list[SentSignal] = []
        for signal in signals:
            await self._deliver(signal)
            taken = SentSignal(
                execution_id=signal.execution_id, number=signal.number, state="taken"
            )
            sent.append(taken)
        return PostedSignal(delivered=sent, is_kept=is_kept)

    async def waits(
        self, name: str | None, correlation: str | None, after: int = 0, limit: int = 50
    ) -> tuple[list[WaitItem], int | None]:
        """Nodes that wait for signals, and where the next page begins.

        A page may have fewer items than its limit, also if others follow.
        """
        search = WaitSearch(kind="signal", correlation=correlation, after=after, limit=limit + 1)
        rows = await self._stores.cold.waits.find(search)
        items: list[WaitItem] = []
        for row in rows[:limit]:
            names = awaited(row.wait).names
            if name is None or name in names:
                items.append(wait_item(row, names))
        return items, rows[limit - 1].id if len(rows) > limit else None

    async def unused(self, stored: Stored) -> list[SignalReceived]:
        """Signals of an execution that no node has taken."""
        signals = await self._stores.cold.signals.of([stored.record.execution_id])
        taken = taken_signals(stored.runs.values())
        return [
            signal
            for signal in signals.get(stored.record.execution_id, ())
            if signal.number not in taken and not signal.name.startswith(OWN_MARK)
        ]

    async def copy_unused(self, stored: Stored, execution_id: str) -> None:
        """Give the signals that an execution left unused to its retry."""
        try:
            for signal in await self.unused(stored):
                copied = NewSignal(
                    execution_id=execution_id,
                    name=signal.name,
                    payload=signal.payload,
                    correlation=signal.correlation,
                    sender=signal.sender,
                    at=signal.at,
                )
                number, _ = await self._stores.cold.signals.put(copied)
                await self._deliver(received(copied, number))
        except PenstockError as error:  # the retry is stored, so the caller must get its id
            log.warning("not all signals that were kept are copied to %s: %s", execution_id, error)

    async def _deliver(self, signal: SignalReceived) -> None:
        # it is stored: what isn't delivered here is found by the reconciler
        with suppress(StoreError):
            await self._stores.hot.append([signal])

    async def listed(self, execution_id: str, name: str | None = None) -> list[SignalItem]:
        """The signals of an execution, by number."""
        stored = await self._executions.stored(execution_id)
        signals = await self._stores.cold.signals.of([execution_id])
        takers = _takers(stored.runs.values())
        has_ended = stored.record.state in EXECUTION_ENDS
        return [
            signal_item(signal, takers.get(signal.number), has_ended=has_ended)
            for signal in signals.get(execution_id, ())
            if name in (None, signal.name) and not signal.name.startswith(OWN_MARK)
        ]


def _check_names(name: str, correlation: str | None) -> None:
    path = "name"
    try:
        check_signal_name(name)
        path = "correlation"
        check_correlation(correlation)
    except BadWait as error:
        problem = Problem("bad_signal_name", path, str(error))
        raise InvalidInput(str(error), [problem]) from None


def encoded_payload(payload: Any) -> bytes:
    """A payload as JSON text. Raises `InvalidInput` for what is none, or too large."""
    try:
        encoded = msgspec.json.encode(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the payload isn't JSON: {error}") from None
    if len(encoded) > PAYLOAD_BYTES_MAX:
        raise InvalidInput(
            f"the payload has {len(encoded):,} bytes; the limit is {PAYLOAD_BYTES_MAX:,}:"
            " send where it is, not what it is"
        )
    return encoded


def waiting_for(runs: Iterable[NodeRun]) -> list[tuple[NodeRun, SignalConfig]]:
    """Nodes that wait for signals, and what for."""
    return [
        (run, awaited_by(run))
        for run in runs
        if run.state is NodeState.WAITING and run.more is not None and run.more.kind == "signal"
    ]


def _check_fits(stored: Stored, signal: SignalReceived) -> bool:
    """Whether a node waits for the signal.

    Raises `InvalidInput` if every node that waits for its name wants another payload.
    """
    problems: list[Problem] = []
    for _, config in waiting_for(stored.runs.values()):
        if fits(config, signal):
            return True
        if fits(msgspec.structs.replace(config, schema=None), signal):
            payload = msgspec.json.decode(signal.payload)
            problems += [
                Problem(problem.code, f"payload.{problem.path}".rstrip("."), problem.message)
                for problem in schema_problems(config.schema, payload)
            ]
    if problems:
        lines = "; ".join(lines_of(problems))
        raise InvalidInput(
            f"the payload doesn't fit what the execution waits for: {lines}", problems
        )
    return False


def _takers(runs: Iterable[NodeRun]) -> dict[int, str]:
    """By number, which node has taken a signal."""
    return {number: run.node_id for run in runs for number in taken_signals([run])}
