"""Takes guards out.

Those of the store are looked up by the model; those of the core are taken out of the real code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from penstock.engine import handling, on_task
from penstock.engine.commands import Commands, NodeRun
from penstock.engine.event_handlers import EVENT_HANDLERS
from penstock.engine.items import Region
from penstock.engine.readiness import Tally, Verdict
from penstock.engine.state import NO_COMMANDS, Execution
from tests.explorer import deciding
from tests.explorer.store import Removed
from tests.explorer.world import Guard


@contextmanager
def without(removed: Removed) -> Iterator[None]:
    with ExitStack() as stack:
        for guard in removed & _OF_THE_CORE.keys():
            for patched in _OF_THE_CORE[guard]():
                stack.enter_context(patched)
        yield


def _blind(change: Callable[[Execution, Any], None]) -> list[Any]:
    """`_current`, for which what `change` makes equal is equal."""
    original = on_task.current_run

    def current(self: Execution, event: Any) -> NodeRun | None:
        if event.node_id in self.runs:
            change(self, event)
        return original(self, event)

    return [patch.object(on_task, "current_run", current)]


def _any_state(self: Execution, event: Any) -> NodeRun | None:
    run = self.runs.get(event.node_id)
    is_it = run is not None and (run.attempt, self.record.generation) == (
        event.attempt,
        event.generation,
    )
    return run if is_it else None


def _handle_whatever_has_ended(self: Execution, event: Any, now: float) -> Commands:
    if self.commands is NO_COMMANDS:
        self.commands = Commands(self.record.execution_id)
    self.now = now
    EVENT_HANDLERS[type(event)](self, event)
    handling.follow_consequences(self)
    return self.commands


def _is_anything_left(self: Region) -> bool:
    return not self.stopping and self.more.opened < self.more.size


_OF_THE_CORE: dict[Guard, Callable[[], list[Any]]] = {
    Guard.ATTEMPT: lambda: _blind(
        lambda self, event: setattr(event, "attempt", self.runs[event.node_id].attempt)
    ),
    Guard.GENERATION: lambda: _blind(
        lambda self, event: setattr(event, "generation", self.record.generation)
    ),
    Guard.CURRENT: lambda: [patch.object(on_task, "current_run", _any_state)],
    Guard.ENDED: lambda: [
        patch.object(handling, "handle", _handle_whatever_has_ended),
        patch.object(deciding, "EXECUTION_ENDS", frozenset()),
    ],
    Guard.LAST: lambda: [patch.object(deciding, "PLAN", deciding.plan(99))],
    Guard.ROOM: lambda: [patch.object(Region, "has_room", property(_is_anything_left))],
    Guard.FAN_IN: lambda: [patch.object(Tally, "verdict", lambda *_: Verdict.START)],
}
