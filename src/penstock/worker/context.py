"""The context of a handler: what it learns about its task, and how it reports progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal
from penstock.worker.item_outputs import ItemOutputs
from penstock.worker.secrets import SecretInUse

HANDLER_LOG = logging.getLogger("penstock.handler")


class Context:
    """A handler's context, given to it as its second argument.

    `idempotency_key` is the same for every attempt and every later retry of this node: give it to
    the services that you call, so that a task that runs twice acts once. `deadline` is a Unix time.
    """

    __slots__ = (
        "_cancelled",
        "_inputs",
        "_on_heartbeat",
        "_raw_inputs",
        "_raw_item",
        "attempt",
        "deadline",
        "execution_id",
        "idempotency_key",
        "index",
        "lenient_config",
        "log",
        "node_id",
        "secrets",
        "workflow",
    )

    def __init__(  # noqa: PLR0913 -- one argument for each thing a handler may ask
        self,
        *,
        execution_id: str,
        node_id: str,
        attempt: int = 1,
        idempotency_key: str = "",
        deadline: float = 0.0,
        workflow: str = "",
        lenient_config: bool = False,
        secrets: Sequence[SecretInUse] = (),
        inputs: Iterable[tuple[str, Any]] = (),
        item: bytes | None = None,
        index: int | None = None,
        log: logging.Logger | None = None,
        on_heartbeat: Callable[[Any], None] | None = None,
    ) -> None:
        self.execution_id = execution_id
        self.node_id = node_id
        self.attempt = attempt
        self.idempotency_key = idempotency_key
        self.deadline = deadline
        self.workflow = workflow
        self.lenient_config = lenient_config
        self.secrets = secrets
        self.log = log or HANDLER_LOG
        self.index = index
        """The index of the node's item; in a loop, the number of the round. Outside, None."""
        self._raw_item = item
        self._raw_inputs = inputs
        self._inputs: dict[str, Any] | None = None
        self._on_heartbeat = on_heartbeat
        self._cancelled = False

    @property
    def item(self) -> Any:
        """The item of the map that the node is in; in a loop, what the last round carried on."""
        return None if self._raw_item is None else msgspec.json.decode(self._raw_item)

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The parents' outputs by node id. Decoded on first use: most handlers never ask."""
        if self._inputs is None:
            self._inputs = {
                node_id: msgspec.json.decode(data) for node_id, data in self._raw_inputs
            }
        return self._inputs

    def items(self, node_id: str) -> ItemOutputs:
        """The outputs of the items of a map that this node depends on, one by one.

        In an async handler `async for result in ctx.items("each")`, in others `for`. Failed items
        are None or an error, as `on_item_failure` says.
        """
        for name, data in self._raw_inputs:
            if name == node_id:
                return ItemOutputs(node_id, data)
        names = ", ".join(sorted(name for name, _ in self._raw_inputs)) or "none"
        raise Terminal(
            f"{self.node_id!r} has no output of a dependency {node_id!r}; those with one: {names}",
            category=ErrorCategory.CONFIG,
        )

    @property
    def raw_inputs(self) -> Mapping[str, bytes]:
        """The parents' outputs as JSON text, for a handler that doesn't decode all of it."""
        return dict(self._raw_inputs)

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for this attempt.

        It was cancelled, it timed out, or another worker has taken the task.
        """
        return self._cancelled

    def cancel(self) -> None:
        """Ask the handler to stop: `cancelled` is true from now on."""
        self._cancelled = True

    def heartbeat(self, detail: Any = None) -> None:
        """Show progress: `detail` (any JSON) is written to the attempt's log."""
        if self._on_heartbeat is not None:
            self._on_heartbeat(detail)
