"""The path that the app is mounted under in another app.

Inside, paths are as in a service of its own: what an app has before its own paths is taken off the
scope, and stands in answers only. So who may do what can't depend on where the app is mounted.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.types import Scope

PREFIX = "penstock.prefix"
"""The key in a request's ASGI scope for the path that the app is mounted under, quoted."""


def unmounted(scope: Scope) -> Scope:
    """The scope of a request as the app would see it if it weren't mounted."""
    root: str = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    own_prefix = _prefix_in(path, root)
    inner: dict[str, Any] = {**scope, "root_path": "", "path_params": {}, PREFIX: quote(root)}
    if own_prefix:
        inner["path"] = path[len(own_prefix) :] or "/"
        raw_path: bytes | None = scope.get("raw_path")
        raw_prefix = own_prefix.encode()
        # a prefix that was sent in another spelling stays: such a path then needs a key
        if raw_path is not None and raw_path.startswith(raw_prefix):
            inner["raw_path"] = raw_path[len(raw_prefix) :] or b"/"
    return inner


def prefix_of(scope: Scope) -> str:
    """The path that the app is mounted under, for addresses in answers; empty if it isn't."""
    prefix: str = scope.get(PREFIX, "")
    return prefix


def _prefix_in(path: str, root: str) -> str:
    """The part of the root path that stands at the beginning of the path.

    A proxy may have taken off the first segments of the root path, or all of them.
    """
    while root:
        if path == root or path.startswith(root + "/"):
            return root
        _, slash, rest = root[1:].partition("/")
        root = slash + rest
    return ""
