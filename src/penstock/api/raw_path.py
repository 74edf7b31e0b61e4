"""The path as it was sent, for names that have a slash in them.

`a%2Fversions` is a name, `a/versions` are the versions of `a`.

A server decodes a path before the router sees it, and then the two are the same.
"""

from __future__ import annotations

from starlette.requests import Request


def is_route_word(request: Request, word: str, index: int = -1) -> bool:
    """Whether this part of the path, as it was sent, is the route's own word.

    Else it is the end of a name.
    """
    parts: list[bytes] = (request.scope.get("raw_path") or request.url.path.encode()).split(b"/")
    return len(parts) >= -index and parts[index] == word.encode()
