"""Definitions: check, store, find by `name`, `name@3`, `name@latest`, `name@stable`."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from penstock.config import Settings
from penstock.definition.model import HandlerDefaults
from penstock.definition.parse import Limits, check_values
from penstock.definition.plan import Compiled, Plan, compile_document
from penstock.definition.problems import Problem
from penstock.definition.read import content_hash, dump_document
from penstock.errors import InvalidInput, InvalidWorkflow, NotFound
from penstock.orchestrator.plans import PLANS_BYTES_MAX, Plans
from penstock.service.graphs import workflow_graph
from penstock.stores.base import Stores, WorkflowVersion
from penstock.stores.records import Weights, WorkflowRow

LATEST = "latest"
ALIAS = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
FRESH_SECONDS = 1.0
"""How long aliases and handlers are cached.

Another process may move an alias, or tell what a handler asks for: it is seen here after this long.
"""
COMPILED_PLANS_MAX = 1000
COMPILED_BYTES_MAX = PLANS_BYTES_MAX
LARGE_BYTES = 8 * 1024
"""A document of this size is compiled in a thread: the loop has other things to do meanwhile.

8 KB of conditions take 30 ms to compile.
"""


class Put(NamedTuple):
    """What came of storing a document."""

    stored: WorkflowVersion
    plan: Plan
    warnings: list[Problem]
    created: bool


class _Ready(NamedTuple):
    compiled: Compiled
    text: bytes
    content_hash: str


class Workflows:
    """Definitions, their versions and aliases."""

    def __init__(
        self,
        stores: Stores,
        plans: Plans,
        settings: Settings,
        handlers: Callable[[], Mapping[str, HandlerDefaults]],
    ) -> None:
        self._cold, self._now, self._plans, self._handlers = (
            stores.cold,
            stores.hot.now,
            plans,
            handlers,
        )
        self.limits = Limits(
            settings.document_max_bytes, settings.document_max_nodes, settings.document_max_depth
        )
        self._compiled: dict[tuple[bool, bytes], tuple[Plan, int]] = {}
        """Compiled documents, by whether it was stored by name and the hash of the document.

        Its plan, and the document's size.
        """
        self._compiling: dict[tuple[bool, bytes], asyncio.Lock] = {}
        """Documents as `_compiled` has them, while one is being compiled.

        Others go on meanwhile.
        """
        self._large = asyncio.Lock()
        """Large documents are compiled one after another: the loop shares the interpreter with one
        thread, not six.
        """
        self._changes = 0
        self._targets: dict[tuple[str, str], tuple[float, Weights]] = {}
        self._remembered: tuple[float, Mapping[str, HandlerDefaults]] | None = None

    async def check(
        self, document: Any, *, strict: bool = False, allow_unknown_handlers: bool = False
    ) -> Compiled:
        """Check a document; stores nothing. Raises `InvalidWorkflow`."""
        return (
            await self._ready(
                document, strict=strict, allow_unknown_handlers=allow_unknown_handlers
            )
        ).compiled

    async def put(
        self, document: Any, *, strict: bool = False, allow_unknown_handlers: bool = False
    ) -> Put:
        """Check and store a document, so that it can be started by its name.

        The same content is the same version.
        """
        ready = await self._ready(
            document, strict=strict, allow_unknown_handlers=allow_unknown_handlers
        )
        plan, now = ready.compiled.plan, self._now()
        stored = await self._cold.put_workflow(plan.name, ready.content_hash, ready.text, now)
        plan.version = stored.version
        self._plans.put(plan, len(ready.text))
        self._forget(plan.name)
        return Put(stored, plan, ready.compiled.warnings, created=stored.created_at == now)

    async def _ready(self, document: Any, *, strict: bool, allow_unknown_handlers: bool) -> _Ready:
        def work(handlers: Mapping[str, HandlerDefaults]) -> _Ready:
            compiled = compile_document(
                document,
                handlers=handlers,
                strict=strict,
                allow_unknown_handlers=allow_unknown_handlers,
                limits=self.limits,
            )
            return _Ready(compiled, self._text(document), content_hash(document))

        async def ready(handlers: Mapping[str, HandlerDefaults]) -> _Ready:
            if _is_small(document):
                return work(handlers)
            async with self._large:
                return await asyncio.to_thread(work, handlers)

        handlers = await self._known_handlers()
        try:
            return await ready(handlers)
        except InvalidWorkflow as refused:
            if all(problem.code != "unknown_handler" for problem in refused.problems):
                raise
            newer = await self._known_handlers(again=True)
            if newer == handlers:
                raise
        return await ready(newer)  # a worker has come since

    async def _known_handlers(self, *, again: bool = False) -> Mapping[str, HandlerDefaults]:
        """The handlers that workers have registered, and those that this process has beside."""
        now = time.monotonic()
        if again or self._remembered is None or now - self._remembered[0] > FRESH_SECONDS:
            self._remembered = now, await self._cold.known_handlers()
        return {**self._handlers(), **self._remembered[1]}

    def _text(self, document: Any) -> bytes:
        """The text of a document as it is stored: as it was sent but for blanks."""
        text = dump_document(document)
        if len(text) > self.limits.max_bytes:
            message = (
                f"the document has {len(text):,} bytes; the limit is {self.limits.max_bytes:,}"
            )
            raise InvalidWorkflow([Problem("too_large", "", message)])
        return text

    async def _put_inline(self, document: Any) -> Plan:
        """Check and store a document for its executions only.

        What others get who start this name stays as it is.
        """
        ready = await self._ready(document, strict=False, allow_unknown_handlers=False)
        plan = ready.compiled.plan
        stored = await self._cold.put_inline(plan.name, ready.content_hash, ready.text, self._now())
        plan.version = stored.version
        self._plans.put(plan, len(ready.text))
        return plan

    async def plan(self, document: dict[str, Any], *, named: bool = False) -> Plan:
        """The plan of a document that is started: one that is known costs next to nothing.

        With `named` it is stored as `put` does it, and `latest` of its name moves.
        """
        try:
            encoded = msgspec.msgpack.encode(document)
        except (TypeError, ValueError, RecursionError, OverflowError):
            check_values(document)  # says where it isn't JSON
            raise
        key = (named, sha256(encoded).digest())
        if key not in self._compiled:
            lock = self._compiling.setdefault(key, asyncio.Lock())
            try:
                async with (
                    lock
                ):  # thousands may start a new document at once: it is compiled for the first
                    if key not in self._compiled:
                        plan = (
                            (await self.put(document)).plan
                            if named
                            else await self._put_inline(document)
                        )
                        self._cache(key, plan, len(encoded))
                        return plan
            finally:
                if not lock.locked():
                    self._compiling.pop(key, None)
        return self._compiled[key][0]

    def _cache(self, key: tuple[bool, bytes], plan: Plan, size: int) -> None:
        self._compiled[key] = (plan, size)
        while (
            len(self._compiled) > 1
            and sum(size for _, size in self._compiled.values()) > COMPILED_BYTES_MAX
        ):
            del self._compiled[next(iter(self._compiled))]
        if len(self._compiled) > COMPILED_PLANS_MAX:
            del self._compiled[next(iter(self._compiled))]

    async def resolve(self, reference: str, execution_id: str = "") -> Plan:
        """The plan of a reference.

        `execution_id` chooses a version where the alias is weighted: the same id always gets the
        same one.
        """
        name, version = await self.find(reference, execution_id)
        return await self._plans.need(name, version)

    async def find(self, reference: str, execution_id: str = "") -> tuple[str, int]:
        """The name and the version that `name@what` means for this execution."""
        name, weights = await self.meaning(reference)
        return name, choose(weights, execution_id)

    async def meaning(self, reference: str) -> tuple[str, Weights]:
        """The name and the versions that `name@what` means. A name may have an @ in it."""
        name, at, tag = reference.rpartition("@")
        if at and name:
            weights = await self._target(name, tag)
            if weights:
                return name, weights
        weights = await self._target(reference, LATEST)
        if weights:
            return reference, weights
        if at and name and await self._target(name, LATEST):
            raise NotFound(f"the workflow {name!r} has no version or alias {tag!r}")
        raise NotFound(f"there is no workflow {reference!r} in this store")

    async def get(
        self, name: str, tag: str | None = None
    ) -> tuple[WorkflowVersion, dict[str, Weights]]:
        found, version = await self.find(f"{name}@{tag}" if tag else name)
        stored = await self._cold.get_workflow(found, version)
        if stored is None:
            raise NotFound(f"there is no workflow {name!r} in this store")
        return stored, await self.aliases(found)

    async def graph(self, name: str, tag: str | None = None) -> dict[str, Any]:
        return workflow_graph(await self.resolve(f"{name}@{tag}" if tag else name))

    async def aliases(self, name: str) -> dict[str, Weights]:
        newest = await self._cold.get_workflow(name)
        return {LATEST: {newest.version: 100}, **await self._cold.aliases(name)} if newest else {}

    async def page(self, after: str | None, limit: int) -> list[WorkflowRow]:
        return await self._cold.workflows(after, limit)

    async def versions(self, name: str) -> list[WorkflowVersion]:
        found = await self._cold.versions(name)
        if not found:
            raise NotFound(f"there is no workflow {name!r} in this store")
        return found

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        if alias == LATEST or not ALIAS.fullmatch(alias):
            why = (
                "moves by itself"
                if alias == LATEST
                else "must be a letter, then letters, digits, '_', '.' or '-'"
            )
            raise InvalidInput(f"the alias {alias!r} {why}; choose another name")
        if not weights or any(share < 0 for share in weights.values()) or not sum(weights.values()):
            raise InvalidInput(
                'the shares must be 0 or more, and one of them above 0, such as {"3": 90, "4": 10}'
            )
        await self._cold.set_alias(name, alias, weights)
        self._forget(name)

    async def remove_alias(self, name: str, alias: str) -> None:
        if not await self._cold.remove_alias(name, alias):
            raise NotFound(f"the workflow {name!r} has no alias {alias!r}")
        self._forget(name)

    async def delete(self, name: str) -> None:
        if not await self._cold.delete_workflow(name):
            raise NotFound(f"there is no workflow {name!r} in this store")
        self._forget(name)
        self._compiled.clear()

    async def _target(self, name: str, tag: str) -> Weights | None:
        known = self._targets.get((name, tag))
        if known is not None and time.monotonic() - known[0] < FRESH_SECONDS:
            return known[1]
        before = self._changes
        weights = await self._read_target(name, tag)
        if (
            weights and before == self._changes
        ):  # or this read may be older than a change that was answered meanwhile
            if len(self._targets) > COMPILED_PLANS_MAX:
                self._targets.clear()
            self._targets[name, tag] = (time.monotonic(), weights)
        return weights

    async def _read_target(self, name: str, tag: str) -> Weights | None:
        if tag == LATEST or (tag.isascii() and tag.isdecimal()):
            if len(tag) > len(str(2**62)):
                return None
            if tag == LATEST:
                newest = await self._cold.get_workflow(name)
                return {newest.version: 100} if newest else None
            found = {
                each.version for each in await self._cold.versions(name)
            }  # without deleted ones
            return {int(tag): 100} if int(tag) in found else None
        return (await self._cold.aliases(name)).get(tag)

    def _forget(self, name: str) -> None:
        self._changes += 1
        for key in [key for key in self._targets if key[0] == name]:
            del self._targets[key]


def choose(weights: Weights, execution_id: str) -> int:
    """Choose a version by its share; the same for the same id."""
    if len(weights) == 1:
        return next(iter(weights))
    remainder = crc32(execution_id.encode()) % sum(weights.values())
    for version in sorted(weights):
        remainder -= weights[version]
        if remainder < 0:
            return version
    raise AssertionError("the shares add up")


def _is_small(document: Any) -> bool:
    if isinstance(document, dict) and "input_schema" in document:
        return False  # a short one may have patterns that take long to compile
    try:
        return len(msgspec.msgpack.encode(document)) < LARGE_BYTES
    except (TypeError, ValueError, RecursionError, OverflowError):
        return True  # and refused at once
