"""The built page under /ui/: files of the package, and for every other address the page itself, which reads it.

The page may load and call nothing but this service, and runs no script that isn't one of these files: whatever an
output or an id holds, it is text.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from penstock.errors import NotFound

FOLDER = Path(__file__).resolve().parents[1] / "ui"
INDEX = "index.html"
ASSETS = "assets/"
"""Files with a hash of their content in their name: they never change."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}


class File(NamedTuple):
    plain: bytes
    packed: bytes
    headers: dict[str, str]


def page_routes(folder: Path = FOLDER) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    # only what is there now can be asked for: a path is never joined with what somebody sent
    names = frozenset(
        str(path.relative_to(folder).as_posix())
        for path in folder.rglob("*")
        if path.suffix in TYPES
    )

    @lru_cache
    def read(name: str) -> File:
        return _read(folder, name)

    @router.get("/")
    async def front() -> Response:
        return RedirectResponse("/ui/")

    @router.get("/ui")
    async def without_slash() -> Response:
        return RedirectResponse("/ui/")

    @router.get("/ui/{path:path}")
    async def page(path: str, request: Request) -> Response:
        if path not in names and (path.startswith(ASSETS) or INDEX not in names):
            raise NotFound(f"the page has no file {path!r}; it was perhaps updated: load it again")
        return _answer(read(path if path in names else INDEX), request)

    return router


def _read(folder: Path, name: str) -> File:
    plain = (folder / name).read_bytes()
    headers = {
        **HEADERS,
        "Content-Type": TYPES[Path(name).suffix],
        "ETag": f'"{hashlib.sha256(plain).hexdigest()[:32]}"',
        # the page itself is asked for each time: it names the files of this version
        "Cache-Control": "public, max-age=31536000, immutable"
        if name.startswith(ASSETS)
        else "no-cache",
    }
    return File(plain, gzip.compress(plain, mtime=0), headers)


def _answer(file: File, request: Request) -> Response:
    if request.headers.get("If-None-Match") == file.headers["ETag"]:
        return Response(status_code=304, headers=file.headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(file.packed, headers={**file.headers, "Content-Encoding": "gzip"})
    return Response(file.plain, headers=file.headers)
