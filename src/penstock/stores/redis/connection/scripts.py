"""The Lua scripts in `stores/redis/lua/`: how they are loaded and run.

Each has a header that names its keys, arguments and answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

from penstock.stores.redis.connection.errors import Refused
from penstock.stores.redis.connection.link import Link

FOLDER = Path(__file__).parents[1] / "lua"
_INCLUDE = re.compile(r"^-- include (\w+)$", re.MULTILINE)


class Script:
    def __init__(self, name: str) -> None:
        self.source = _INCLUDE.sub(_read_part, (FOLDER / f"{name}.lua").read_text())
        self._is_loaded = False
        """Whether some server has loaded it; one that hasn't answers NOSCRIPT."""
        self.digest = sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    def begin(self, link: Link, key: str, *arguments: Any) -> asyncio.Future[Any]:
        """Run the script as a future: it happens whether or not somebody waits for it."""
        if self._is_loaded:
            begun = link.begin("EVALSHA", self.digest, 1, key, *arguments)
            if begun is not None:
                return begun
        return asyncio.ensure_future(self.run(link, key, *arguments))

    async def run(self, link: Link, key: str, *arguments: Any) -> Any:
        """Run the script.

        `key` names the hash slot, and the script makes its neighbours' names from it.
        """
        return await self._make(link.call, key, *arguments)

    async def ask(self, link: Link, key: str, *arguments: Any) -> Any:
        """Run a script that changes nothing: again if the connection broke."""
        return await self._make(link.ask, key, *arguments)

    async def _make(self, call: Callable[..., Awaitable[Any]], key: str, *arguments: Any) -> Any:
        try:
            answer = await call("EVALSHA", self.digest, 1, key, *arguments)
        except Refused as error:
            if error.code != "NOSCRIPT":
                raise
            answer = await call("EVAL", self.source, 1, key, *arguments)
        self._is_loaded = True
        return answer


def _read_part(include: re.Match[str]) -> str:
    return (FOLDER / f"{include[1]}.part.lua").read_text()


@cache
def script(name: str) -> Script:
    return Script(name)
