"""What a user says about a schedule."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from penstock.schedules.times import Rule

Overlap = Literal["skip", "queue_one", "queue_all", "cancel_old", "allow"]
CatchupPolicy = Literal["last", "all", "skip"]
Outcome = Literal["started", "skipped", "late", "queued", "failed_to_start"]


class Catchup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens with slots that passed while nothing looked after the schedule."""

    policy: CatchupPolicy = "last"
    window_seconds: float = 86_400.0
    """Slots that are older than this are never started."""
    max: int = 100


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule, as a user has defined it."""

    workflow: str
    when: tuple[Rule, ...]
    input: dict[str, Any] | None = None
    overlap: Overlap = "skip"
    catchup: Catchup = Catchup()
    jitter_seconds: float = 0.0
    from_at: float | None = None
    """Slots before this don't exist."""
    until_at: float | None = None
    """Nor do slots from this on."""
    pause_on_failure: bool = False
    labels: dict[str, Any] = {}
    priority: int = 0
