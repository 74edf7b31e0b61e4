"""The rules of a secret, in a running engine: who is refused gets neither the value nor a call."""

from __future__ import annotations

import asyncio
import html
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from penstock import Context, Engine
from penstock.config import SecretRule, Settings
from penstock.stores.memory import MemoryStores
from penstock.stores.records import DeadLetterSearch
from penstock.worker.registry import Handler, Registry
from tests.worker.servers import always, serving

CANARY = "canary-5f2a-rules"


async def _own(config: dict[str, Any]) -> dict[str, Any]:
    return config


async def run(settings: Settings, **node: Any) -> dict[str, Any]:
    document = {"name": "flow", "nodes": [{"id": "a", "retry": {"max_attempts": 1}, **node}]}
    registry = Registry([Handler("own", _own)])
    async with Engine(MemoryStores(time.time), settings=settings, registry=registry) as engine:
        result = await (await engine.start(document)).result()
        view = await engine.service.executions.view(result.execution_id)
        assert CANARY not in msgspec.json.encode(view).decode()
        nodes = msgspec.to_builtins(view.nodes)
        return dict(nodes["a"])


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", CANARY)


@pytest.mark.fault("security", "a secret in a workflow that may not use it")
@pytest.mark.parametrize(
    "rule",
    [
        SecretRule(workflows=("payroll",)),
        SecretRule(handlers=("llm",)),
        SecretRule(hosts=("a.test",)),
    ],
)
@pytest.mark.parametrize("name", ["TOKEN", "token"])
def test_a_node_that_may_not_use_a_secret_fails_and_never_gets_it(rule, name):
    config = {"x": f"{{{{ secrets.{name} }}}}"}
    node = asyncio.run(run(Settings(secret_rules={"TOKEN": rule}), handler="own", config=config))
    assert (node["state"], node["error"]["category"]) == ("FAILED", "secret")
    assert f"may not use the secret '{name}'" in node["error"]["message"]


def test_a_node_that_may_use_it_does():
    rules = {"TOKEN": SecretRule(workflows=("flow",), handlers=("own",))}
    node = asyncio.run(
        run(Settings(secret_rules=rules), handler="own", config={"x": "{{ secrets.TOKEN }}"})
    )
    assert (node["state"], node["output"]) == ("COMPLETED", {"x": "***"})


@pytest.mark.parametrize("option", ["headers", "json", "params"])
def test_a_call_to_another_host_is_not_made(option):
    async def story() -> None:
        async with serving(always(text="got it")) as server:
            config = {"url": server.url, option: {"X-Key": "{{ secrets.TOKEN }}"}}
            settings = Settings(
                http_private=True, secret_rules={"TOKEN": SecretRule(hosts=("api.example.com",))}
            )
            node = await run(settings, handler="call_external_service", config=config)
            assert (node["state"], server.requests) == ("FAILED", [])
            assert "the secret 'TOKEN' may not be sent to '127.0.0.1'" in node["error"]["message"]
            allowed = Settings(
                http_private=True, secret_rules={"TOKEN": SecretRule(hosts=("127.0.0.1",))}
            )
            assert (await run(allowed, handler="call_external_service", config=config))[
                "state"
            ] == "COMPLETED"
            assert len(server.requests) == 1

    asyncio.run(story())


def test_a_secret_in_the_url_picks_no_host_of_its_own():
    node = asyncio.run(
        run(
            Settings(
                http_private=True, secret_rules={"TOKEN": SecretRule(hosts=("api.example.com",))}
            ),
            handler="call_external_service",
            config={"url": "http://{{ secrets.TOKEN }}.evil.test/"},
        )
    )
    assert (node["state"], node["error"]["category"]) == ("FAILED", "secret")


SHOWN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in capitals": str.upper,
    "quoted": lambda secret: quote(secret, safe="").lower(),
    "Basic": lambda secret: b64encode(f"me:{secret}".encode()).decode(),
    "HTML": html.escape,
    "repr": lambda secret: repr(secret.encode()),
    "cut": lambda secret: secret[:-3] + "…",
}


@pytest.mark.fault(
    "security", "a secret that comes back in another form, in an output, an error and a log"
)
def test_a_secret_in_any_form_is_in_no_output_error_log_or_dead_letter(monkeypatch):
    """What is kept is compared with what the handler wrote: none of it may have come through."""
    secret = "canary <5f2a> & Co/Größe"
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", secret)

    async def blab(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        form = SHOWN[config["form"]](config["token"])
        ctx.log.info("sent %s", form)
        ctx.heartbeat({"sent": form})
        if config["fails"]:
            raise RuntimeError(f"refused {form}")
        return {"text": f"got {form}", form: [form]}

    async def story() -> None:
        stores = MemoryStores(time.time)
        async with Engine(stores, registry=Registry([Handler("blab", blab)])) as engine:
            for name, write in SHOWN.items():
                for fails in (False, True):
                    config = {"token": "{{ secrets.TOKEN }}", "form": name, "fails": fails}
                    node = {
                        "id": "a",
                        "handler": "blab",
                        "config": config,
                        "retry": {"max_attempts": 1},
                    }
                    result = await (await engine.start({"name": "blab", "nodes": [node]})).result()
                    executions = engine.service.executions
                    untouched = [
                        msgspec.json.encode(await executions.view(result.execution_id)).decode(),
                        str(await executions.logs(result.execution_id, "a")),
                        str(await stores.cold.dead_letters.dead_letters(DeadLetterSearch())),
                    ]
                    written = write(secret)
                    for text in untouched:
                        assert not [
                            part for part in (written[:9], written[-9:-1]) if part in text
                        ], (name, text)

    asyncio.run(story())
