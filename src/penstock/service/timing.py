"""The times of a service and of its use cases, which it passes down to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from penstock.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTiming:
    """How long answers are cached, and the pauses between two reads of a store."""

    worker_dead_seconds: float = Settings().worker_dead_seconds
    """The operator's: a worker that has said nothing for so long is dead."""

    offers_fresh_seconds: float = 1.0
    """How long the offers of the workers are cached."""
    definitions_fresh_seconds: float = 1.0
    """How long aliases and handlers are cached.

    When another process moves an alias or registers a handler, it is seen here after this time.
    """
    end_seen_seconds: float = 0.05
    """The pause between two reads of an execution whose end was seen."""
    end_missed_seconds: float = 1.0
    """The pause between two reads of an execution whose end may have been missed."""
    value_search_seconds: float = 2.0
    """How long one page of a search in inputs and outputs may take."""
    subscription_pause_seconds: float = 0.25
    """The pause before the next try, when the subscription to commits has broken off."""
    subscription_linger_seconds: float = 2.0
    """How long the subscription to commits outlives the last subscriber.

    Calls often come one after another, and a new subscription costs more than an open one.
    """

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The times with these settings."""
        return cls(worker_dead_seconds=settings.worker_dead_seconds)
