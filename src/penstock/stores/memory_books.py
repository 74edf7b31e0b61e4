"""The books of a store in memory: definitions, API keys, the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, takewhile

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.errors import NotFound
from penstock.stores import codec
from penstock.stores.base import WorkflowVersion, inline_hash
from penstock.stores.matching import finds_line
from penstock.stores.records import ApiKey, AuditLine, AuditSearch, Weights, WorkflowRow


class MemoryDefinitions:
    def __init__(self) -> None:
        self._workflows: dict[str, list[WorkflowVersion]] = {}
        self._deleted: set[tuple[str, int]] = set()
        self._aliases: dict[str, dict[str, Weights]] = {}
        self._handlers: dict[str, HandlerDefaults] = {}

    async def put_workflow(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        versions = self._workflows.setdefault(name, [])
        for version in versions:
            if version.content_hash == content_hash:
                self._deleted.discard((name, version.version))
                return version
        versions.append(WorkflowVersion(name, len(versions) + 1, content_hash, document, now))
        return versions[-1]

    async def put_inline(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        known = [
            version for version in await self.versions(name) if version.content_hash == content_hash
        ]
        if known:
            return known[0]
        versions = self._workflows.setdefault(name, [])
        for version in versions:
            if version.content_hash == inline_hash(content_hash):
                return version
        versions.append(
            WorkflowVersion(name, len(versions) + 1, inline_hash(content_hash), document, now)
        )
        self._deleted.add((name, len(versions)))
        return versions[-1]

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        if version is None:
            return next(iter(await self.versions(name)), None)
        versions = self._workflows.get(name, [])
        return versions[version - 1] if 0 < version <= len(versions) else None

    async def workflows(self, after: str | None = None, limit: int = 50) -> list[WorkflowRow]:
        names = (name for name in sorted(self._workflows) if after is None or name > after)
        rows = [
            self._workflow_row(versions)
            for name in names
            if (versions := await self.versions(name))
        ]
        return rows[:limit]

    def _workflow_row(self, versions: list[WorkflowVersion]) -> WorkflowRow:
        newest, first = versions[0], versions[-1]
        aliases = dict(self._aliases.get(newest.name, {}))
        return WorkflowRow(
            newest.name, newest.version, len(versions), first.created_at, newest.created_at, aliases
        )

    async def versions(self, name: str) -> list[WorkflowVersion]:
        versions = reversed(self._workflows.get(name, []))
        return [each for each in versions if (name, each.version) not in self._deleted]

    async def delete_workflow(self, name: str) -> bool:
        versions = await self.versions(name)
        self._deleted.update((name, each.version) for each in versions)
        self._aliases.pop(name, None)
        return bool(versions)

    async def aliases(self, name: str) -> dict[str, Weights]:
        return {alias: dict(weights) for alias, weights in self._aliases.get(name, {}).items()}

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        missing = sorted(set(weights) - {each.version for each in await self.versions(name)})
        if missing:
            raise NotFound(f"there is no workflow {name}@{missing[0]} in this store")
        self._aliases.setdefault(name, {})[alias] = dict(weights)

    async def remove_alias(self, name: str, alias: str) -> bool:
        return self._aliases.get(name, {}).pop(alias, None) is not None

    async def remember_handlers(self, handlers: Mapping[str, HandlerDefaults]) -> None:
        self._handlers.update(handlers)

    async def known_handlers(self) -> dict[str, HandlerDefaults]:
        return dict(self._handlers)


class MemoryBooks:
    """API keys and the audit log."""

    def __init__(self) -> None:
        self._api_keys: dict[str, bytes] = {}
        self._audit: list[bytes] = []
        self._forgotten = 0
        """Lines of the audit log: numbers aren't given twice."""

    async def put_key(self, key: ApiKey) -> None:
        self._api_keys[key.id] = codec.encode(key)

    async def keys(self) -> list[ApiKey]:
        keys = [msgspec.msgpack.decode(data, type=ApiKey) for data in self._api_keys.values()]
        return sorted(keys, key=lambda key: (key.created_at, key.id))

    async def revoke_key(self, key_id: str, now: float) -> bool:
        key = next((key for key in await self.keys() if key.id == key_id), None)
        if key is None or key.revoked_at is not None:
            return False
        key.revoked_at = now
        await self.put_key(key)
        return True

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
