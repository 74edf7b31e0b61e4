"""Webhooks over stores that are away, processes that die, and secrets that are gone."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from typing import Any, cast

import pytest

from penstock.config import Settings
from penstock.definition.model import HandlerDefaults
from penstock.errors import InvalidInput, PenstockError, StoreUnavailable, Terminal
from penstock.sandbox import InlineSandbox, Job, JobFailed, Overrun
from penstock.service import Service
from penstock.service.hooks import (
    BadRequest,
    Handling,
    Hooks,
    HookUnusable,
    MessageBusy,
    RawRequest,
)
from penstock.stores.hooks import CLAIM_SECONDS, REQUEST_SECONDS
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import Search

FLOW = {"name": "flow", "nodes": [{"id": "a", "handler": "work"}]}
HOOK = {
    "id": "shop",
    "start": {"workflow": "flow", "input": {"event": "{{ body }}", "at": "{{ headers.at ?? 0 }}"}},
    "verify": {"scheme": "github", "secret": "SHOP"},
    "idempotency": "{{ body.id }}",
}


class BrokenSandbox:
    """A sandbox whose jobs end with an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def run(self, job: Job) -> AsyncIterator[bytes]:
        if job is not None:
            raise self._error
        yield b""

    async def close(self) -> None: ...


class Desk:
    """A service with a hook, whose clock a test sets."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0
        self.stores = cast("Any", MemoryStores(lambda: self.time))
        self.secrets = {"SHOP": "the secret of the shop"}
        handlers = lambda: {"work": HandlerDefaults()}  # noqa: E731 -- what it knows
        self.service = Service(
            self.stores,
            PlanCache(self.stores.cold, handlers),
            Settings(),
            handlers,
            sandbox=InlineSandbox(),
        )
        self.hooks = self.hooks_with()

    def hooks_with(self, *, is_local: bool = True, sandbox: Any = None) -> Hooks:
        service = self.service
        return Hooks(
            self.stores,
            service.submissions,
            service.signals,
            service.executions,
            service.workflows,
            sandbox or service.sandbox,
            secret=self._secret,
            is_local=is_local,
        )

    def _secret(self, name: str) -> str:
        if name not in self.secrets:
            raise Terminal(f"there is no secret '{name}'")
        return self.secrets[name]

    async def send(
        self, value: Any, hooks: Hooks | None = None, hook_id: str = "shop", **headers: str
    ) -> Handling:
        body = json.dumps(value).encode()
        digest = hmac.new(b"the secret of the shop", body, sha256).hexdigest()
        headers = {"x-hub-signature-256": f"sha256={digest}", **headers}
        hooks = hooks or self.hooks
        hook = await hooks.find(hook_id)
        raw = RawRequest(headers, {}, body)
        return await hooks.handle(await hooks.accept(hook, raw, is_from_here=True))

    async def count(self) -> int:
        return len(await self.stores.cold.executions.search(Search(limit=1000)))


def at_a_desk(scenario: Callable[[Desk], Awaitable[None]]) -> None:
    async def main() -> None:
        desk = Desk()
        await desk.service.workflows.put(FLOW)
        _, created = await desk.hooks.put(HOOK)
        assert created
        await scenario(desk)

    asyncio.run(main())


def failing(error: Exception) -> Callable[..., Awaitable[None]]:
    async def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def test_a_process_that_dies_before_it_has_answered_starts_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(desk: Desk) -> None:
        with monkeypatch.context() as patch:
            # the answer isn't written, as if the process had died here
            patch.setattr(desk.stores.cold.hooks, "record", failing(StoreUnavailable("away")))
            first = await desk.send({"id": 7})
        assert first.status == 202
        with pytest.raises(MessageBusy):
            await desk.send({"id": 7})

        desk.time += CLAIM_SECONDS + 1
        # also if the input would be another one now
        again = await desk.send({"id": 7}, at="later")
        assert again.answer == first.answer
        assert await desk.count() == 1
        replayed = await desk.send({"id": 7})
        assert replayed.replayed
        assert replayed.answer == first.answer

    at_a_desk(scenario)


def test_a_message_that_couldnt_be_stored_may_be_sent_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(desk: Desk) -> None:
        with monkeypatch.context() as patch:
            away = failing(StoreUnavailable("away"))
            patch.setattr(desk.stores.cold.executions, "record_intents", away)
            with pytest.raises(StoreUnavailable):
                await desk.send({"id": 7})
        assert await desk.hooks.deliveries("shop") == []
        assert (await desk.send({"id": 7})).status == 202
        assert await desk.count() == 1

    at_a_desk(scenario)


def test_a_hook_whose_secret_is_gone_lets_nobody_in() -> None:
    async def scenario(desk: Desk) -> None:
        secret = desk.secrets.pop("SHOP")
        with pytest.raises(HookUnusable) as raised:
            await desk.send({"id": 7})
        assert "SHOP" not in str(raised.value)
        desk.secrets["SHOP"] = ""
        with pytest.raises(BadRequest):
            await desk.send({"id": 7})
        desk.secrets["SHOP"] = secret
        assert (await desk.send({"id": 7})).status == 202

    at_a_desk(scenario)


def test_a_hook_without_a_signature_is_only_for_this_machine() -> None:
    async def scenario(desk: Desk) -> None:
        open_hook = {**HOOK, "id": "open", "verify": "none"}
        public = desk.hooks_with(is_local=False)
        with pytest.raises(InvalidInput, match="loopback"):
            await public.put(open_hook)
        await desk.hooks.put(open_hook)
        assert (await desk.send({"id": 1}, hook_id="open")).status == 202
        # the same store, served where others reach it
        with pytest.raises(BadRequest):
            await desk.send({"id": 2}, public, hook_id="open")

        hook = await desk.hooks.find("open")
        with pytest.raises(BadRequest):
            await desk.hooks.accept(hook, RawRequest({}, {}, b"{}"), is_from_here=False)

    at_a_desk(scenario)


@pytest.mark.parametrize(
    "error", [Overrun("it took more than 0.5 s of computing time"), JobFailed("a bug of ours")]
)
def test_a_filter_that_goes_over_a_limit_is_the_requests_error(error: PenstockError) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.hooks.put({**HOOK, "filter": "body.text.matches('^a')"})
        hooks = desk.hooks_with(sandbox=BrokenSandbox(error))
        with pytest.raises(InvalidInput, match="filter can't be evaluated"):
            await desk.send({"id": 7, "text": "a"}, hooks)
        (delivery,) = await desk.hooks.deliveries("shop")
        assert (delivery.status, delivery.outcome) == (422, "failed")
        # the message isn't used up by that
        assert (await desk.send({"id": 7, "text": "a"})).outcome == "started"

    at_a_desk(scenario)


def test_a_request_that_isnt_stored_any_more_isnt_delivered_again() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.send({"id": 7})
        (delivery,) = await desk.hooks.deliveries("shop")
        assert (await desk.hooks.redeliver("shop", delivery.id)).status == 202
        assert await desk.count() == 2
        desk.time += REQUEST_SECONDS + 1
        with pytest.raises(PenstockError, match="isn't stored any more"):
            await desk.hooks.redeliver("shop", delivery.id)

    at_a_desk(scenario)


def test_a_workflow_that_was_deleted_is_told_in_the_deliveries() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.service.workflows.delete("flow")
        with pytest.raises(InvalidInput):
            await desk.send({"id": 7})
        (delivery,) = await desk.hooks.deliveries("shop")
        assert "'flow'" in delivery.detail
        await desk.service.workflows.put(FLOW)
        assert (await desk.send({"id": 7})).status == 202

    at_a_desk(scenario)


@pytest.mark.parametrize("document", [None, 1, [], {}, {"id": "a", "start": {"input": set()}}])
def test_what_is_no_hook_is_refused(document: Any) -> None:
    async def scenario(desk: Desk) -> None:
        with pytest.raises(InvalidInput):
            await desk.hooks.put(document)
        with pytest.raises(InvalidInput, match="limit is"):
            await desk.hooks.put({**HOOK, "filter": "x" * 70_000})

    at_a_desk(scenario)
