"""`ctx.items`: the outputs of a map's items in handlers of each kind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock
from penstock import Context, Engine, Workflow, testing
from penstock.errors import Terminal
from penstock.worker.item_outputs import PAGE_ITEMS
from penstock.worker.registry import Handler, Registry, handler
from tests.waiting import let_others_run


@handler("item_outputs.in_process", runs_in="process")
def in_process(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return in_thread(config, ctx)


def in_thread(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    items = ctx.items("each")
    return {"count": len(items), "sum": sum(item["n"] for item in items)}


async def on_loop(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    numbers = [item["n"] async for item in ctx.items("each")]
    return {"count": len(numbers), "sum": sum(numbers)}


def reduced(handler: Handler, count: int = 3, **config: Any) -> Workflow:
    """A map of `count` items whose outputs the handler adds up."""
    flow = Workflow("reduce")
    with flow.each("each", list(range(count))) as item:
        flow.node("one", "echo", n=item, **config)
    flow.node("sum", handler.name, after="each")
    return flow


@pytest.mark.parametrize("padding", [0, 200_000], ids=["small", "a blob"])
@pytest.mark.parametrize(
    "chosen",
    [
        Handler("reduce", in_thread),
        Handler("reduce", on_loop),
        Handler("item_outputs.in_process", in_process, runs_in="process"),
    ],
    ids=["thread", "loop", "process"],
)
def test_a_handler_goes_through_the_items_of_a_map(chosen: Handler, padding: int) -> None:
    async def main() -> Any:
        flow = reduced(chosen, padding="x" * padding)
        async with Engine("memory://", registry=Registry([chosen])) as engine:
            execution = await engine.start(flow)
            return (await execution.result()).unwrap()

    assert asyncio.run(main()) == {"sum": {"count": 3, "sum": 3}}


def test_others_get_a_turn_between_pages() -> None:
    data = b"[%b]" % b",".join([b"1"] * (2 * PAGE_ITEMS + 1))
    ctx = Context(execution_id="e", node_id="sum", inputs=[("each", data)])

    async def main() -> list[int]:
        turns: list[int] = []
        read = 0

        async def watch() -> None:
            while True:
                turns.append(read)
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        await let_others_run()
        async for _ in ctx.items("each"):
            read += 1
        watching.cancel()
        return turns

    assert {PAGE_ITEMS, 2 * PAGE_ITEMS} <= set(asyncio.run(main()))


def test_what_is_no_map_is_named() -> None:
    inputs = [("each", b'{"total": 3}'), ("a", b"1")]
    ctx = Context(execution_id="e", node_id="sum", inputs=inputs)
    with pytest.raises(Terminal, match='unless its "output" is counts or none'):
        ctx.items("each")
    with pytest.raises(Terminal, match=r"'sum' has no output of a dependency 'eech'.*: a, each"):
        ctx.items("eech")


def test_failed_items_are_what_the_map_says() -> None:
    flow = Workflow("reduce")
    with flow.each("each", [1, 2], on_item_failure="collect"):
        flow.node("one", "fail", condition="item == 2", retry=penstock.Retry(max_attempts=1))

    def categories(config: dict[str, Any], ctx: Context) -> list[Any]:
        return [item and item["error"]["category"] for item in ctx.items("each")]

    flow.node("sum", "categories", after="each")
    run = testing.run(flow, handlers={"categories": categories})
    assert run.result.unwrap() == {"sum": [None, "handler"]}
