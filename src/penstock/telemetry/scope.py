"""Whose attempt the current code belongs to.

Handlers, their threads and the tasks that they start inherit it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol


class Scope(Protocol):
    """An attempt, as far as its log lines and its outgoing calls need to know it."""

    @property
    def marks(self) -> Mapping[str, str | int]:
        """What its log lines and span carry: `execution_id`, `node_id`, `attempt` and others."""

    @property
    def trace(self) -> str:
        """The `traceparent` of the request that started the execution, or nothing."""

    def clean(self, value: Any) -> Any:
        """A copy of texts, dictionaries and lists without the attempt's secrets."""


current_scope: ContextVar[Scope | None] = ContextVar("penstock_scope", default=None)
