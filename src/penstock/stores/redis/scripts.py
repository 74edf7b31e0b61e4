"""The Lua scripts: files beside this one, each with a header that says what it is given and what it answers."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

from penstock.stores.redis.wire import Link, Refused

FOLDER = Path(__file__).parent / "lua"


_INCLUDE = re.compile(r"^-- include (\w+)$", re.MULTILINE)


class Script:
    def __init__(self, name: str) -> None:
        self.source = _INCLUDE.sub(_part, (FOLDER / f"{name}.lua").read_text())
        self.digest = sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    async def run(self, link: Link, key: str, *arguments: Any) -> Any:
        """`key` is the one that names the hash slot; the script makes its neighbours' names from it."""
        try:
            return await link.call("EVALSHA", self.digest, 1, key, *arguments)
        except Refused as error:
            if error.code != "NOSCRIPT":
                raise
        return await link.call("EVAL", self.source, 1, key, *arguments)


def _part(found: re.Match[str]) -> str:
    return (FOLDER / f"{found[1]}.part.lua").read_text()


@cache
def script(name: str) -> Script:
    return Script(name)
