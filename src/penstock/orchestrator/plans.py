"""Compiled versions, kept by name and number: a version never changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from penstock.definition.model import HandlerDefaults
from penstock.definition.plan import Plan, compile_document
from penstock.errors import NotFound
from penstock.stores.cold import ColdStore

MOST_PLANS = 2000


class Plans:
    def __init__(
        self,
        cold: ColdStore,
        handlers: Callable[[], Mapping[str, HandlerDefaults]],
        on_new: Callable[[Plan], None] | None = None,
    ) -> None:
        self._cold, self._handlers, self._on_new = cold, handlers, on_new
        self._plans: dict[tuple[str, int], Plan] = {}

    def put(self, plan: Plan) -> None:
        self._plans[plan.name, plan.version] = plan
        if len(self._plans) > MOST_PLANS:  # the oldest; an execution that runs has its own hold on it
            del self._plans[next(iter(self._plans))]
        if self._on_new is not None:
            self._on_new(plan)

    def known(self, name: str, version: int) -> Plan | None:
        return self._plans.get((name, version))

    async def get(self, name: str, version: int) -> Plan | None:
        plan = self.known(name, version)
        if plan is None:
            stored = await self._cold.get_workflow(name, version)
            if stored is None:
                return None
            document = json.loads(stored.document)
            # it was checked when it was submitted; its handlers may be other workers' by now
            plan = compile_document(document, handlers=self._handlers(), allow_unknown_handlers=True, checked=True).plan
            plan.name, plan.version = name, version
            self.put(plan)
        return plan

    async def need(self, name: str, version: int) -> Plan:
        """As `get`. Raises `NotFound`."""
        plan = self.known(name, version) or await self.get(name, version)
        if plan is None:
            raise NotFound(f"there is no workflow {f'{name}@{version}'!r} in this store")
        return plan
