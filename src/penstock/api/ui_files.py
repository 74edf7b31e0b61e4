"""The built UI under /ui/: files of the package, and index.html for every other path.

The script of the UI reads the path. The UI may load from and call only this service, and runs no
script that isn't one of these files, so an output or an id can't inject one.

Built files have plain names, such as `assets/index.js`. They are served in a folder that is named
after a hash of all of them, `assets/<version>/index.js`, and refer to each other by relative
addresses. So browsers may cache them forever, and a tab that was opened before an update can't load
parts of its script from the new version: it gets a 404.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from penstock.api.mounting import prefix_of
from penstock.api.routing import Router
from penstock.errors import NotFound

FOLDER = Path(__file__).resolve().parents[1] / "ui"
INDEX = "index.html"
ASSETS = "assets/"
VERSION_LENGTH = 16
PREFIX_META = b'<meta name="penstock-prefix" content="%s" />'
"""Tells the script which path the app is mounted under."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; worker-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}
CACHE_FOR_EVER = "public, max-age=31536000, immutable"
CACHE_AND_REVALIDATE = "no-cache"


class File(NamedTuple):
    plain: bytes
    packed: bytes
    headers: dict[str, str]


class UiFiles:
    """The files of a built UI, each read once, when it is first requested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, File] = {}
        # Only files that exist now are served: a path is never joined with what a client sent.
        self._names = frozenset(
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*")
            if path.suffix in TYPES
        )

    @cached_property
    def version(self) -> str:
        """A hash over the names and contents of all assets."""
        digest = hashlib.sha256()
        for name in sorted(self._names):
            if not name.startswith(ASSETS):
                continue
            content = (self._folder / name).read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:VERSION_LENGTH]

    def find(self, path: str, prefix: str = "") -> File:
        """The file for a path under /ui/; index.html for every path that isn't a file's.

        `prefix` is the path that the app is mounted under.
        """
        name = self._name_of(path)
        if name is None or name not in self._names:
            raise NotFound(
                f"the UI has no file {path!r}; Penstock may have been updated: reload the UI"
            )
        if name == INDEX and prefix:
            # not kept: a prefix may have parts that come from a request
            return self._load(name, prefix)
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _name_of(self, path: str) -> str | None:
        """The name in the folder, without the version; None for an asset of another version."""
        if not path.startswith(ASSETS):
            return path if path in self._names else INDEX
        versioned = f"{ASSETS}{self.version}/"
        if not path.startswith(versioned):
            return None
        return ASSETS + path.removeprefix(versioned)

    def _load(self, name: str, prefix: str = "") -> File:
        plain = (self._folder / name).read_bytes()
        if name == INDEX:
            plain = self._with_addresses(plain, prefix.encode())
        headers = {
            **HEADERS,
            "Content-Type": TYPES[Path(name).suffix],
            "ETag": f'"{hashlib.sha256(plain).hexdigest()[:32]}"',
            "Cache-Control": CACHE_FOR_EVER if name.startswith(ASSETS) else CACHE_AND_REVALIDATE,
        }
        return File(plain, gzip.compress(plain, mtime=0), headers)

    def _with_addresses(self, index: bytes, prefix: bytes) -> bytes:
        """index.html with absolute addresses, as it is served at many paths."""
        assets = f"/ui/{ASSETS}{self.version}/".encode()
        index = index.replace(PREFIX_META % b"", PREFIX_META % prefix)
        index = index.replace(f'"./{ASSETS}'.encode(), b'"' + prefix + assets)
        return index.replace(b'"./', b'"' + prefix + b"/ui/")


def page_routes(folder: Path = FOLDER) -> Router:
    router = Router()
    files = UiFiles(folder)

    @router.get("/")
    async def front(request: Request) -> Response:
        return RedirectResponse(f"{prefix_of(request.scope)}/ui/")

    @router.get("/ui")
    async def without_slash(request: Request) -> Response:
        return RedirectResponse(f"{prefix_of(request.scope)}/ui/")

    @router.get("/ui/{path:path}")
    async def page(path: str, request: Request) -> Response:
        return _answer(files.find(path, prefix_of(request.scope)), request)

    return router


def _answer(file: File, request: Request) -> Response:
    if request.headers.get("If-None-Match") == file.headers["ETag"]:
        return Response(status_code=304, headers=file.headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(file.packed, headers={**file.headers, "Content-Encoding": "gzip"})
    return Response(file.plain, headers=file.headers)
