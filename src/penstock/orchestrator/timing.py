"""The times of an orchestrator and of all its parts, which it passes down to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from penstock.config import Settings
from penstock.stores.tiering import CLAIM_SECONDS

_SETTINGS = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorTiming:
    """How long an orchestrator's parts wait, and how often they look."""

    # The operator's: `config.Timing` says what each of them is.
    lease_seconds: float = _SETTINGS.lease_seconds
    reconcile_seconds: float = _SETTINGS.reconcile_seconds
    stale_seconds: float = _SETTINGS.stale_seconds
    worker_dead_seconds: float = _SETTINGS.worker_dead_seconds
    reaper_seconds: float = _SETTINGS.reaper_seconds
    checkpoint_seconds: float = _SETTINGS.checkpoint_seconds
    archive_seconds: float = _SETTINGS.archive_seconds
    no_handler_seconds: float = _SETTINGS.no_handler_seconds
    """A task whose handler no live worker of its queue has fails after so long."""

    retry_seconds: float = 0.2
    """The pause after a call that a store has failed."""
    drain_seconds: float = 3.0
    """How long a stop waits until what was reported is recorded, and then for its owners."""
    routing_seconds: float = 1.0
    """How often the offers of the workers are read."""
    backlog_seconds: float = 2.0
    """How often an owner looks at the tasks that wait in queues."""
    untaken_seconds: float = 1.5
    """Seconds for which a queue must have been without a worker.

    One that has just been left may be about to get another.
    """

    idle_seconds: float = 1.0
    """How long an owner without timers waits for events at once."""
    proof_seconds: float = 10.0
    """Seconds after which an owner with nothing to write makes an empty commit.

    That tells it whether it still may: a store of its own (Redis) may have gone back in time
    without a broken connection; then the position is wrong as well.
    """
    rest_seconds: float = 15.0
    """Executions leave memory when nothing has happened to them for this long, or up to twice.

    Their next event loads them again.
    """
    quarantine_seconds: float = 60.0
    """How long an execution that can't be read is in quarantine, before it is tried again."""
    blobs_away_seconds: float = 1.0
    """Seconds for which a blob store that is away isn't asked.

    Longer, up to `blobs_away_seconds_max`, if it took its time to fail, for everybody waited.
    """
    blobs_away_seconds_max: float = 30.0
    intents_seconds: float = 2.0
    """Seconds to wait for intents from a cold store that says nothing.

    Executions that run wait behind those that begin.
    """
    intents_silent_seconds: float = 8.0
    """Seconds after that for which the cold store isn't asked for intents at all.

    By that time the store itself knows whether it is there.
    """

    cold_away_retry_seconds: float = 1.0
    """How long an execution waits that can't go on without a cold store that is away."""

    claim_wait_seconds: float = 0.5
    """Seconds between two tries to claim a partition that is run on another server, at first."""
    claim_wait_seconds_max: float = 4.0
    claim_renew_seconds: float = CLAIM_SECONDS / 3
    """How often an owner renews its claim: two renewals may fail before it is lost."""
    claim_release_seconds: float = 1.0
    """How long the end of a lease term waits until the claim is released."""
    rebuild_pause_seconds: float = 5.0
    """Seconds between rebuilds of a partition on two servers.

    If they took turns, everything would run again each time.
    """
    collect_seconds: float = 0.1
    """Seconds in which the archiver waits for more that ends.

    A transaction costs more than a wait that nobody sees.
    """
    cold_away_seconds: float = 1.0
    """The pause after a write that the cold store has failed."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The times with these settings. Raises `SettingsError` if those don't go together."""
        timing = settings.timing
        return cls(
            lease_seconds=timing.lease_seconds,
            reconcile_seconds=timing.reconcile_seconds,
            stale_seconds=timing.stale_seconds,
            worker_dead_seconds=timing.worker_dead_seconds,
            reaper_seconds=timing.reaper_seconds,
            checkpoint_seconds=timing.checkpoint_seconds,
            archive_seconds=timing.archive_seconds,
            no_handler_seconds=settings.no_handler_seconds,
        )
