"""The times of a worker and of its parts, which it passes down to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from penstock.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTiming:
    """How long a worker's parts wait, and how often they look.

    Those of the process beside it are in `heartbeat_process`, which imports nothing of ours.
    """

    heartbeat_seconds: float = Settings().heartbeat_seconds
    """The operator's: how often a worker says that it lives."""

    retry_seconds: float = 0.2
    """The pause after a call that a store has failed."""
    long_seconds: float = 0.1
    """A task that runs longer than this is reported as started; shorter ones report once."""
    abandon_seconds: float = 1.0
    """How long a stopped handler has to clean up, before its slot is replaced."""

    live_logs_seconds: float = 1.0
    """How often the logs of running attempts are sent, of attempts that have run for that long."""
    live_logs_again_seconds: float = 20.0
    """Seconds after which a log is sent again.

    A store forgets a log that isn't: nobody else removes what a dead worker has left there.
    """

    loop_look_seconds: float = 0.25
    """How often the loop watch looks at the loop."""
    loop_blocked_seconds: float = 1.0
    """A loop that hasn't turned for so long is blocked."""

    loop_told_seconds: float = 1.0
    """How often the loop says to the process beside the worker that it runs.

    More often if that process is to notice sooner that it doesn't.
    """
    silence_margin_seconds: float = 10.0
    """A worker may be silent for so much longer than its tasks may run.

    The owner takes a task back only as late as that.
    """
    silence_slack_seconds: float = 10.0
    """A promise about that silence is made for so much longer than it need be.

    So not every task that begins has to make a new one.
    """
    companion_restart_seconds: float = 5.0
    """The pause before the process beside the worker is started again."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The times with these settings. Raises `SettingsError` if those don't go together."""
        return cls(heartbeat_seconds=settings.timing.heartbeat_seconds)
