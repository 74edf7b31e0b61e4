"""The fields of a node that runs another workflow, each checked on its own."""

from __future__ import annotations

from typing import Any

from penstock.definition.fields import Reader, has_reference
from penstock.definition.model import CHILD_DEPTH_MAX, CHILD_HANDLER, Child

CHILD_FIELDS = ("wait", "on_parent_end", "max_depth")
"""Fields that have no effect on other nodes."""
ONE_ATTEMPT = {"max_attempts": 1}
"""The nodes of a child have attempts of their own."""


def read_child(reader: Reader, handler: str, config: dict[str, Any]) -> Child | None:
    """What a node says about its child; None if it runs no workflow."""
    if handler != CHILD_HANDLER:
        for name in CHILD_FIELDS:
            if reader.raw.get(name) is not None:
                message = f'"{name}" has no effect without "handler": "{CHILD_HANDLER}"'
                path = reader.path_of(name)
                reader.problems.warn("ignored_field", path, message, reader.node_id)
        return None
    workflow = config.get("workflow")
    is_known = isinstance(workflow, str) and not has_reference(workflow)
    is_awaited = reader.value("wait", (bool,))
    max_depth = None
    if reader.raw.get("max_depth") is not None:
        max_depth = reader.integer("max_depth", minimum=1, maximum=CHILD_DEPTH_MAX)
    return Child(
        reference=workflow if is_known else None,
        is_awaited=is_awaited is not False,
        on_parent_end=reader.choice("on_parent_end", ("cancel", "leave")) or "cancel",
        max_depth=max_depth,
    )
