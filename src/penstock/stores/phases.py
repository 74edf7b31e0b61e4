"""Phases of an execution: what a cold store has to see to, beside the state that users see.

Before anything of an execution was committed its state is PENDING, whether it waits for its trigger
or is about to begin. The phase tells the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from penstock.engine.states import EXECUTION_ENDS, ExecutionState


class Phase(StrEnum):
    WAITING = "waiting"
    """Recorded, and not started before it is triggered."""
    STARTED = "started"
    """It should run: an orchestrator has to see to it, whether it has begun or not."""
    ENDED = "ended"
    """Nothing changes any more."""


PHASES: Mapping[str, tuple[Phase, ...]] = {
    ExecutionState.PENDING: (Phase.WAITING, Phase.STARTED),
    ExecutionState.RUNNING: (Phase.STARTED,),
    ExecutionState.PAUSED: (Phase.STARTED,),
    ExecutionState.COMPLETED: (Phase.ENDED,),
    ExecutionState.FAILED: (Phase.ENDED,),
    ExecutionState.CANCELLED: (Phase.ENDED,),
}
"""The phases that an execution of each state can be in."""


def phase_of_begun(state: str) -> Phase:
    """The phase of an execution of which something was committed."""
    return Phase.ENDED if state in EXECUTION_ENDS else Phase.STARTED
