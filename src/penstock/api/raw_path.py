"""The path of a request as it was sent, for names that contain a slash.

`a%2Fversions` is a name, `a/versions` are the versions of `a`. A server decodes a path before the
router sees it, and then the two are the same.
"""

from __future__ import annotations

from starlette.requests import Request


def is_route_word(request: Request, word: str, index: int = -1) -> bool:
    """Whether this part of the path is a word of the route, and not part of a name."""
    raw_path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    parts = raw_path.split(b"/")
    return len(parts) >= -index and parts[index] == word.encode()
