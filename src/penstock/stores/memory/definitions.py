"""Workflow definitions, their aliases and known handlers, in memory."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.definition.model import HandlerDefaults
from penstock.errors import NotFound
from penstock.stores.base import WorkflowVersion, inline_hash
from penstock.stores.records import Weights, WorkflowRow


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
        new_version = WorkflowVersion(name, len(versions) + 1, content_hash, document, now)
        versions.append(new_version)
        return new_version

    async def put_inline(
        self, name: str, content_hash: str, document: bytes, now: float
    ) -> WorkflowVersion:
        for version in await self.versions(name):
            if version.content_hash == content_hash:
                return version

        key = inline_hash(content_hash)
        versions = self._workflows.setdefault(name, [])
        for version in versions:
            if version.content_hash == key:
                return version
        new_version = WorkflowVersion(name, len(versions) + 1, key, document, now)
        versions.append(new_version)
        self._deleted.add((name, new_version.version))
        return new_version

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowVersion | None:
        if version is None:
            newest_first = await self.versions(name)
            return newest_first[0] if newest_first else None
        versions = self._workflows.get(name, [])
        if not 0 < version <= len(versions):
            return None
        return versions[version - 1]

    async def workflows(self, after: str | None = None, limit: int = 50) -> list[WorkflowRow]:
        rows: list[WorkflowRow] = []
        for name in sorted(self._workflows):
            if after is not None and name <= after:
                continue
            versions = await self.versions(name)
            if versions:
                rows.append(self._workflow_row(versions))
        return rows[:limit]

    def _workflow_row(self, versions: list[WorkflowVersion]) -> WorkflowRow:
        newest = versions[0]
        first = versions[-1]
        return WorkflowRow(
            newest.name,
            newest.version,
            len(versions),
            first.created_at,
            newest.created_at,
            dict(self._aliases.get(newest.name, {})),
        )

    async def versions(self, name: str) -> list[WorkflowVersion]:
        versions = self._workflows.get(name, [])
        return [
            version
            for version in reversed(versions)
            if (name, version.version) not in self._deleted
        ]

    async def delete_workflow(self, name: str) -> bool:
        versions = await self.versions(name)
        self._deleted.update((name, version.version) for version in versions)
        self._aliases.pop(name, None)
        return bool(versions)

    async def aliases(self, name: str) -> dict[str, Weights]:
        aliases = self._aliases.get(name, {})
        return {alias: dict(weights) for alias, weights in aliases.items()}

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        existing = {version.version for version in await self.versions(name)}
        missing = sorted(set(weights) - existing)
        if missing:
            raise NotFound(f"there is no workflow {name}@{missing[0]} in this store")
        aliases = self._aliases.setdefault(name, {})
        aliases[alias] = dict(weights)

    async def remove_alias(self, name: str, alias: str) -> bool:
        aliases = self._aliases.get(name, {})
        weights = aliases.pop(alias, None)
        return weights is not None

    async def remember_handlers(self, handlers: Mapping[str, HandlerDefaults]) -> None:
        self._handlers.update(handlers)

    async def known_handlers(self) -> dict[str, HandlerDefaults]:
        return dict(self._handlers)
