"""Workflows: documents are checked and stored, and versions are looked up.

A reference is a `name`, `name@3`, `name@latest` or `name@stable`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from penstock.config import Settings
from penstock.definition.handler_configs import ConfigCheck, ConfigRules
from penstock.definition.model import HandlerDefaults
from penstock.definition.parse import Limits, check_values
from penstock.definition.plan import Compiled, Plan, compile_document
from penstock.definition.problems import Problem
from penstock.definition.read import content_hash, dump_document
from penstock.errors import InvalidInput, InvalidWorkflow, NotFound
from penstock.service.child_checks import child_problems
from penstock.service.timing import ServiceTiming
from penstock.stores import references
from penstock.stores.base import Stores, WorkflowVersion
from penstock.stores.plan_cache import PLANS_BYTES_MAX, PlanCache
from penstock.stores.records import LATEST, Weights, WorkflowRow
from penstock.views.graphs import WorkflowGraph, workflow_graph
from penstock.views.workflows import Validation

ALIAS = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
COMPILED_PLANS_MAX = 1000
KNOWN_NAMES_MAX = 500
"""Names among which one that is unknown is looked for."""
PINS_MAX = 1000
"""References of one tree whose meaning is recorded."""
COMPILED_BYTES_MAX = PLANS_BYTES_MAX
LARGE_BYTES = 8 * 1024
"""A document of this size is compiled in a thread: 8 KB of conditions take 30 ms to compile."""


class Put(NamedTuple):
    """The result of storing a document."""

    stored: WorkflowVersion
    plan: Plan
    warnings: list[Problem]
    created: bool


class _CheckedDocument(NamedTuple):
    compiled: Compiled
    text: bytes
    content_hash: str


class Workflows:
    """Workflows, their versions and aliases."""

    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        stores: Stores,
        plans: PlanCache,
        settings: Settings,
        handlers: Callable[[], Mapping[str, HandlerDefaults]],
        timing: ServiceTiming,
        *,
        config_checks: Callable[[], Mapping[str, ConfigCheck]] = dict,
    ) -> None:
        self._fresh_seconds = timing.definitions_fresh_seconds
        self._cold = stores.cold
        self._now = stores.hot.now
        self._plans = plans
        self._handlers = handlers
        self._config_checks = config_checks
        self._uses_mocks = settings.mock_services
        self._has_models = settings.names_models
        self.limits = Limits(
            settings.document_max_bytes, settings.document_max_nodes, settings.document_max_depth
        )
        self._compiled: dict[tuple[bool, bool, bytes], tuple[Plan, int]] = {}
        """Plans and sizes of compiled documents.

        The key is whether the document was stored by name, whether its configs were checked
        leniently, and its hash.
        """
        self._compiling: dict[tuple[bool, bool, bytes], asyncio.Lock] = {}
        """A lock for each document that is being compiled, with the same keys."""
        self._large = asyncio.Lock()
        """Large documents are compiled one after another.

        So the event loop shares the interpreter with one thread only.
        """
        self._changes = 0
        """Changes of aliases and versions, counted."""
        self._targets: dict[tuple[str, str], tuple[float, Weights]] = {}
        """When each name and tag was read, and the versions that it means."""
        self._registered: Mapping[str, HandlerDefaults] = {}
        """The handlers that workers have registered."""
        self._registered_at = float("-inf")

    async def check(
        self, document: Any, *, strict: bool = False, allow_unknown_handlers: bool = False
    ) -> Compiled:
        """Check a document; stores nothing. Raises `InvalidWorkflow`."""
        checked = await self._check(
            document, strict=strict, allow_unknown_handlers=allow_unknown_handlers
        )
        return checked.compiled

    async def put(
        self,
        document: Any,
        *,
        strict: bool = False,
        allow_unknown_handlers: bool = False,
        allow_unknown_workflows: bool = False,
        lenient_config: bool = False,
    ) -> Put:
        """Check and store a document, so that it can be started by its name.

        The same content is the same version.
        """
        checked = await self._check(
            document,
            strict=strict,
            allow_unknown_handlers=allow_unknown_handlers,
            allow_unknown_workflows=allow_unknown_workflows,
            lenient_config=lenient_config,
        )
        plan = checked.compiled.plan
        now = self._now()
        stored = await self._cold.definitions.put_workflow(
            plan.name, checked.content_hash, checked.text, now
        )
        plan.version = stored.version
        self._plans.put(plan, len(checked.text))
        self._forget(plan.name)
        return Put(stored, plan, checked.compiled.warnings, created=stored.created_at == now)

    async def _check(
        self,
        document: Any,
        *,
        strict: bool = False,
        allow_unknown_handlers: bool = False,
        allow_unknown_workflows: bool = False,
        lenient_config: bool = False,
    ) -> _CheckedDocument:
        config_rules = ConfigRules(
            self._config_checks(), lenient_config or self._uses_mocks, self._has_models
        )

        def check_now(handlers: Mapping[str, HandlerDefaults]) -> _CheckedDocument:
            compiled = compile_document(
                document,
                handlers=handlers,
                strict=strict,
                allow_unknown_handlers=allow_unknown_handlers,
                limits=self.limits,
                config_rules=config_rules,
            )
            return _CheckedDocument(compiled, self._text(document), content_hash(document))

        async def check(handlers: Mapping[str, HandlerDefaults]) -> _CheckedDocument:
            if _is_small(document):
                return check_now(handlers)
            async with self._large:
                return await asyncio.to_thread(check_now, handlers)

        handlers = await self._known_handlers()
        try:
            checked = await check(handlers)
        except InvalidWorkflow as refused:
            if all(problem.code != "unknown_handler" for problem in refused.problems):
                raise
            newer = await self._known_handlers(again=True)
            if newer == handlers:
                raise
            checked = await check(newer)  # a worker has registered since
        if checked.compiled.plan.has_children:
            await self._check_children(checked.compiled, allow_unknown=allow_unknown_workflows)
        return checked

    async def _check_children(self, compiled: Compiled, *, allow_unknown: bool) -> None:
        """Check the children of a document against what is stored. Raises `InvalidWorkflow`."""

        async def known_names() -> list[str]:
            return [row.name for row in await self.page(None, KNOWN_NAMES_MAX)]

        problems = await child_problems(compiled.definition, self.resolve, known_names)
        if allow_unknown:
            problems = [problem for problem in problems if problem.code != "unknown_workflow"]
        if problems:
            raise InvalidWorkflow(problems)

    async def _known_handlers(self, *, again: bool = False) -> Mapping[str, HandlerDefaults]:
        """The handlers that workers have registered, and those of this process."""
        now = time.monotonic()
        if again or now - self._registered_at > self._fresh_seconds:
            self._registered = await self._cold.definitions.known_handlers()
            self._registered_at = now
        return {**self._handlers(), **self._registered}

    def _text(self, document: Any) -> bytes:
        """The text of a document as it is stored: as it was sent, without white space."""
        text = dump_document(document)
        limit = self.limits.max_bytes
        if len(text) > limit:
            message = f"the document has {len(text):,} bytes; the limit is {limit:,}"
            raise InvalidWorkflow([Problem("too_large", "", message)])
        return text

    async def _put_inline(self, document: Any, *, lenient_config: bool) -> Plan:
        """Check and store an inline document, for its executions only.

        What is stored under its name doesn't change.
        """
        checked = await self._check(document, lenient_config=lenient_config)
        plan = checked.compiled.plan
        stored = await self._cold.definitions.put_inline(
            plan.name, checked.content_hash, checked.text, self._now()
        )
        plan.version = stored.version
        self._plans.put(plan, len(checked.text))
        return plan

    async def plan(
        self, document: dict[str, Any], *, named: bool = False, lenient_config: bool = False
    ) -> Plan:
        """The plan of a document that is started; that of a known document is cached.

        With `named` the document is stored as by `put`, and `latest` of its name moves. With
        `lenient_config`, faults of configs are no errors.
        """
        try:
            encoded = msgspec.msgpack.encode(document)
        except (TypeError, ValueError, RecursionError, OverflowError):
            check_values(document)  # says where it isn't JSON
            raise

        key = (named, lenient_config, sha256(encoded).digest())
        if key not in self._compiled:
            # thousands may start a new document at once: it is compiled for the first of them
            lock = self._compiling.setdefault(key, asyncio.Lock())
            try:
                async with lock:
                    if key not in self._compiled:
                        plan = await self._store_document(
                            document, named=named, lenient_config=lenient_config
                        )
                        self._cache(key, plan, len(encoded))
                        return plan
            finally:
                if not lock.locked():
                    self._compiling.pop(key, None)

        plan, _ = self._compiled[key]
        return plan

    async def _store_document(
        self, document: dict[str, Any], *, named: bool, lenient_config: bool
    ) -> Plan:
        if not named:
            return await self._put_inline(document, lenient_config=lenient_config)
        put = await self.put(document, lenient_config=lenient_config)
        return put.plan

    def _cache(self, key: tuple[bool, bool, bytes], plan: Plan, size: int) -> None:
        compiled = self._compiled
        compiled[key] = (plan, size)
        total_bytes = sum(size for _, size in compiled.values())
        while len(compiled) > 1 and total_bytes > COMPILED_BYTES_MAX:
            _, oldest_bytes = compiled.pop(next(iter(compiled)))
            total_bytes -= oldest_bytes
        if len(compiled) > COMPILED_PLANS_MAX:
            del compiled[next(iter(compiled))]

    async def resolve(self, reference: str, execution_id: str = "") -> Plan:
        """The plan of a reference.

        If the alias has weights, `execution_id` determines the version: the same id always gets
        the same one.
        """
        name, version = await self.find(reference, execution_id)
        return await self._plans.need(name, version)

    async def find(self, reference: str, execution_id: str = "") -> tuple[str, int]:
        """The name and the version that a reference means for this execution."""
        name, weights = await self.meaning(reference)
        return name, references.choose(weights, execution_id)

    async def pins(self, plan: Plan, root_id: str) -> dict[str, tuple[str, int]]:
        """By reference, the name and version that it means for the children of an execution.

        Of all workflows that it may come to, as far as documents name them. What isn't there fails
        the node that asks for it.
        """
        pins: dict[str, tuple[str, int]] = {}
        plans = [plan] if plan.has_children else []
        for parent in plans:
            for node in parent.handler_nodes():
                reference = None if node.child is None else node.child.reference
                if reference is None or reference in pins or len(pins) == PINS_MAX:
                    continue
                try:
                    pins[reference] = await self.find(reference, root_id)
                    child = await self._plans.need(*pins[reference])
                except NotFound:
                    continue
                if child.has_children:
                    plans.append(child)
        return pins

    async def meaning(self, reference: str) -> tuple[str, Weights]:
        """The name and the versions that a reference means. A name may contain an @."""
        return await references.meaning(self._target, reference)

    async def validation(
        self,
        document: Any,
        *,
        strict: bool = False,
        allow_unknown_handlers: bool = False,
        graph: bool = False,
    ) -> Validation:
        """What is wrong with a document, and if nothing is, its graph; nothing is stored."""
        view = Validation(valid=True, name=None, nodes=0, problems=[], warnings=[])
        try:
            checked = await self.check(
                document, strict=strict, allow_unknown_handlers=allow_unknown_handlers
            )
        except InvalidWorkflow as error:
            view.valid = False
            view.problems = list(error.problems)
            return view

        view.name = checked.plan.name
        view.nodes = len(checked.plan.nodes)
        view.warnings = list(checked.warnings)
        if graph:
            view.graph = workflow_graph(checked.plan)
        return view

    async def searched(self, reference: str) -> tuple[str, int | None]:
        """The name and the version that a reference means in a search for executions.

        A reference that isn't found is taken as a name: a name may contain an @, and the workflow
        may have been deleted before its executions.

        Raises `InvalidInput` if it means several versions.
        """
        if "@" not in reference:
            return reference, None
        try:
            name, weights = await self.meaning(reference)
        except NotFound:
            return reference, None
        versions = [version for version, share in weights.items() if share]
        if len(versions) > 1:
            raise InvalidInput(f"{reference!r} means several versions; name one with version=")
        return name, versions[0]

    async def get(
        self, name: str, tag: str | None = None
    ) -> tuple[WorkflowVersion, dict[str, Weights]]:
        found_name, version = await self.find(f"{name}@{tag}" if tag else name)
        stored = await self._cold.definitions.get_workflow(found_name, version)
        if stored is None:
            raise NotFound(f"there is no workflow {name!r} in this store")
        return stored, await self.aliases(found_name)

    async def graph(self, name: str, tag: str | None = None) -> WorkflowGraph:
        return workflow_graph(await self.resolve(f"{name}@{tag}" if tag else name))

    async def aliases(self, name: str) -> dict[str, Weights]:
        newest = await self._cold.definitions.get_workflow(name)
        if newest is None:
            return {}
        return {LATEST: {newest.version: 100}, **await self._cold.definitions.aliases(name)}

    async def page(self, after: str | None, limit: int) -> list[WorkflowRow]:
        return await self._cold.definitions.workflows(after, limit)

    async def versions(self, name: str) -> list[WorkflowVersion]:
        versions = await self._cold.definitions.versions(name)
        if not versions:
            raise NotFound(f"there is no workflow {name!r} in this store")
        return versions

    async def set_alias(self, name: str, alias: str, weights: Weights) -> None:
        if alias == LATEST:
            raise InvalidInput(f"the alias {alias!r} moves by itself; choose another name")
        if not ALIAS.fullmatch(alias):
            raise InvalidInput(
                f"the alias {alias!r} must be a letter, then letters, digits, '_', '.' or '-';"
                " choose another name"
            )
        shares = weights.values()
        if not any(shares) or any(share < 0 for share in shares):
            raise InvalidInput(
                'the shares must be 0 or more, and one of them above 0, such as {"3": 90, "4": 10}'
            )
        await self._cold.definitions.set_alias(name, alias, weights)
        self._forget(name)

    async def remove_alias(self, name: str, alias: str) -> None:
        if not await self._cold.definitions.remove_alias(name, alias):
            raise NotFound(f"the workflow {name!r} has no alias {alias!r}")
        self._forget(name)

    async def delete(self, name: str) -> None:
        if not await self._cold.definitions.delete_workflow(name):
            raise NotFound(f"there is no workflow {name!r} in this store")
        self._forget(name)
        self._compiled.clear()

    async def _target(self, name: str, tag: str) -> Weights | None:
        cached = self._targets.get((name, tag))
        if cached is not None:
            read_at, weights = cached
            if time.monotonic() - read_at < self._fresh_seconds:
                return weights

        changes = self._changes
        read = await self._read_target(name, tag)
        # if something has changed meanwhile, what was read may be older than that
        if read and changes == self._changes:
            if len(self._targets) > COMPILED_PLANS_MAX:
                self._targets.clear()
            self._targets[name, tag] = (time.monotonic(), read)
        return read

    async def _read_target(self, name: str, tag: str) -> Weights | None:
        return await references.read_target(self._cold.definitions, name, tag)

    def _forget(self, name: str) -> None:
        self._changes += 1
        for key in [key for key in self._targets if key[0] == name]:
            del self._targets[key]


def _is_small(document: Any) -> bool:
    if isinstance(document, dict) and "input_schema" in document:
        return False  # a short one may have patterns that take long to compile
    try:
        return len(msgspec.msgpack.encode(document)) < LARGE_BYTES
    except (TypeError, ValueError, RecursionError, OverflowError):
        return True  # it is refused at once
