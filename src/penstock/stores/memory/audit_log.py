"""The audit log in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile

import msgspec

from penstock.stores import codec
from penstock.stores.matching import finds_line
from penstock.stores.records import AuditLine, AuditSearch


class MemoryAuditLog:
    def __init__(self) -> None:
        self._audit: list[bytes] = []
        self._forgotten = 0
        """How many lines were deleted: their numbers aren't given twice."""

    async def write_audit(self, lines: Sequence[AuditLine]) -> None:
        self._audit += [codec.encode(line) for line in lines]

    async def audit(self, search: AuditSearch) -> list[AuditLine]:
        last = self._forgotten + len(self._audit)
        found = (self._line(number) for number in range(last, self._forgotten, -1))
        return list(islice((line for line in found if finds_line(search, line)), search.limit))

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        first = range(self._forgotten + 1, self._forgotten + len(self._audit) + 1)
        count = len(list(takewhile(lambda number: self._line(number).at < before, first[:limit])))
        del self._audit[:count]
        self._forgotten += count
        return count

    def _line(self, number: int) -> AuditLine:
        line = msgspec.msgpack.decode(self._audit[number - self._forgotten - 1], type=AuditLine)
        line.id = number
        return line
