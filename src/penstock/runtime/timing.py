"""The times of the layers that an engine runs in one process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from penstock.config import Settings
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.service.timing import ServiceTiming
from penstock.worker.timing import WorkerTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTiming:
    """The times of each layer."""

    orchestrator: OrchestratorTiming = field(default_factory=OrchestratorTiming)
    worker: WorkerTiming = field(default_factory=WorkerTiming)
    service: ServiceTiming = field(default_factory=ServiceTiming)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The times with these settings. Raises `SettingsError` if those don't go together."""
        return cls(
            orchestrator=OrchestratorTiming.of(settings),
            worker=WorkerTiming.of(settings),
            service=ServiceTiming.of(settings),
        )
