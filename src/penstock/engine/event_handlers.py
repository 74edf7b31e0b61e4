"""The registry of event handlers: one function for each type of event, registered by `@on`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.engine.events import Event

if TYPE_CHECKING:
    from penstock.engine.state import Execution

EVENT_HANDLERS: dict[type[Event], Callable[[Execution, Any], None]] = {}

AnEvent = TypeVar("AnEvent", bound=Event)
EventHandler = Callable[["Execution", AnEvent], None]


def on(event_type: type[AnEvent]) -> Callable[[EventHandler[AnEvent]], EventHandler[AnEvent]]:
    """Register the function that handles events of this type."""

    def register(handler: EventHandler[AnEvent]) -> EventHandler[AnEvent]:
        EVENT_HANDLERS[event_type] = handler
        return handler

    return register
