"""The audit log in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

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
        newest_first = (self._line(number) for number in range(last, self._forgotten, -1))
        matching = (line for line in newest_first if finds_line(search, line))
        return list(islice(matching, search.limit))

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        count = 0
        while count < min(limit, len(self._audit)):
            if self._line(self._forgotten + count + 1).at >= before:
                break
            count += 1
        del self._audit[:count]
        self._forgotten += count
        return count

    def _line(self, number: int) -> AuditLine:
        data = self._audit[number - self._forgotten - 1]
        line = msgspec.msgpack.decode(data, type=AuditLine)
        line.id = number
        return line
