"""The mailbox of an execution: signals that were received, and the nodes that wait for one.

Nothing of it is stored: which signals are free, and who waits, follows from the records of nodes.
What a signal or a wait costs doesn't grow with the number of nodes that wait for others: both are
found by name, and nodes by correlation.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge

from penstock.engine.commands import NodeRun
from penstock.engine.events import SignalReceived

Listener = tuple[float, int]
"""When a node began to wait, and its number: the order in which nodes get signals."""


class Mailbox:
    __slots__ = ("_free", "_listeners", "signals")

    def __init__(self, signals: Iterable[SignalReceived] = ()) -> None:
        self.signals: dict[int, SignalReceived] = {signal.number: signal for signal in signals}
        """By number, every signal that was received."""
        self._free: dict[str, dict[int, SignalReceived]] = {}
        """By name and number, signals that no node has taken."""
        self._listeners: dict[str, dict[str | None, list[Listener]]] = {}
        """By name and correlation, nodes that wait, and some that did."""

    def restore(self, runs: Iterable[NodeRun]) -> None:
        """Find out which signals are free, from the records of all nodes."""
        if not self.signals:
            return
        taken = taken_signals(runs)
        for number in sorted(self.signals):
            if number not in taken:
                self._add_free(self.signals[number])

    def receive(self, signal: SignalReceived) -> bool:
        """Add a signal; False if it was received before."""
        if signal.number in self.signals:
            return False
        self.signals[signal.number] = signal
        self._add_free(signal)
        return True

    def _add_free(self, signal: SignalReceived) -> None:
        self._free.setdefault(signal.name, {})[signal.number] = signal

    def free(self, names: Sequence[str]) -> list[SignalReceived]:
        """Signals of these names that no node has taken, by number."""
        signals = [signal for name in names for signal in self._free.get(name, {}).values()]
        return sorted(signals, key=lambda signal: signal.number)

    def take(self, signal: SignalReceived) -> None:
        """Note that a node has taken a signal."""
        self._free.get(signal.name, {}).pop(signal.number, None)

    def listen(
        self, names: Sequence[str], correlation: str | None, since: float, number: int
    ) -> None:
        """Note that a node waits for a signal of one of these names."""
        for name in names:
            by_correlation = self._listeners.setdefault(name, {})
            insort(by_correlation.setdefault(correlation, []), (since, number))

    def listeners(self, signal: SignalReceived) -> Iterator[Listener]:
        """Nodes that may take a signal, those that began to wait first before others."""
        return merge(*self._lists_for(signal))

    def forget(self, signal: SignalReceived, listeners: Iterable[Listener]) -> None:
        """Drop nodes that don't wait any more from those that may take such a signal."""
        for listener in listeners:
            for waiting in self._lists_for(signal):
                position = bisect_left(waiting, listener)
                if waiting[position : position + 1] == [listener]:
                    del waiting[position]

    def _lists_for(self, signal: SignalReceived) -> list[list[Listener]]:
        """A signal without a correlation is for all nodes; a node without one takes all signals."""
        by_correlation = self._listeners.get(signal.name, {})
        if signal.correlation is None:
            return list(by_correlation.values())
        keys = (None, signal.correlation)
        return [by_correlation[key] for key in keys if key in by_correlation]


def taken_signals(runs: Iterable[NodeRun]) -> set[int]:
    """Numbers of the signals that nodes have taken."""
    taken: set[int] = set()
    for run in runs:
        if run.more is not None:
            taken.update(run.more.signals)
            if run.more.signal is not None:
                taken.add(run.more.signal)
    return taken
