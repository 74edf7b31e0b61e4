"""The contract suite: the tests that every store must pass.

Anybody can run them on their own store.

In a test file of the store's package, with pytest installed (`pip install 'penstock[contract]'`):

    from pathlib import Path

    from penstock.contract import contract_tests
    from my_package import MyStores

    def new_stores(folder: Path) -> MyStores:
        return MyStores(folder / "store.file")

    globals().update(contract_tests({"my store": new_stores}))

`docs/stores.md` says what a store is and how others find it. The topics, each a module:

- `leases`: one owner per partition; a former owner's commits are refused.
- `commit`: a commit is all or nothing, and what is loaded is the sum of the commits.
- `inbox`: events in order, from any position, trimmed by what was committed.
- `task_queue`: a task belongs to one worker at a time.
- `handlers`: a worker gets only tasks whose handler it has.
- `priority`: tasks of a higher priority come first.
- `tasks_ahead`: how many tasks are ahead of one that waits.
- `live_logs`: what running tasks have logged so far.
- `fleet`: members, and what a shared store shows of them.
- `cold`: intents, control requests, what has ended.
- `triggering`: executions that wait for their trigger.
- `signals`: signals are numbered, and kept until they are delivered.
- `waits`: the list of nodes that wait for somebody.
- `children`: what commits send to children and to parents.
- `posts`: signals to whoever waits for a correlation.
- `idempotency`: the same request twice is one execution.
- `definitions`: versions by content, and aliases.
- `search`: every filter, alone and with others, page by page.
- `counts`: counts say the same as a search.
- `dead_letters`: dead letters, closed once.
- `keys_and_audit`: API keys and the audit log.
- `feed`: history and commit feed: every line once, in order.
- `forgetting`: retention.
- `blobs`: large values.

And what the topics share:

- `facts`: facts to put into stores, and an owner that commits them.
- `waiting`: waiting without sleeping for a fixed time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from types import ModuleType

    from penstock.stores.base import Stores

NewStores: TypeAlias = "Callable[[Path], Stores]"
"""Makes empty stores that are not opened yet; they may keep files in the folder.

It is called once for each test.
"""

TOPICS = (
    "blobs",
    "cold",
    "commit",
    "counts",
    "dead_letters",
    "definitions",
    "feed",
    "fleet",
    "forgetting",
    "handlers",
    "idempotency",
    "inbox",
    "keys_and_audit",
    "leases",
    "live_logs",
    "posts",
    "priority",
    "search",
    "signals",
    "task_queue",
    "tasks_ahead",
    "triggering",
    "waits",
    "children",
)
"""The parts of the suite, each a module of this package."""

__all__ = ["TOPICS", "NewStores", "contract_tests"]


def contract_tests(stores: Mapping[str, NewStores], *topics: str) -> dict[str, Callable[..., None]]:
    """Tests of the suite by name, for the `globals()` of a test file.

    Each test runs on all `stores`, whose names are part of the test ids. `topics` selects
    parts of the suite, such as `"leases"` (see `TOPICS`); without them it is the whole suite.
    """
    try:
        import pytest  # noqa: PLC0415 -- an extra
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the contract suite needs pytest; install it with pip install 'penstock[contract]'"
        ) from None

    # Before the first import, as topics import one another: a failed assert shows its values then.
    pytest.register_assert_rewrite(*(f"{__name__}.{topic}" for topic in TOPICS))

    tests: dict[str, Callable[..., None]] = {}
    for topic in topics or TOPICS:
        if topic not in TOPICS:
            raise ValueError(
                f"the contract suite has no topic {topic!r}; it has {', '.join(TOPICS)}"
            )
        name = f"{__name__}.{topic}"
        for test in _tests_of(import_module(name)):
            parametrize = pytest.mark.parametrize(
                "new_stores", list(stores.values()), ids=list(stores)
            )
            tests[test.__name__] = parametrize(_with_new_stores(test))

    return tests


def _tests_of(module: ModuleType) -> list[Any]:
    return [value for name, value in vars(module).items() if name.startswith("test_")]


def _with_new_stores(test: Any) -> Callable[..., None]:
    """A test as pytest calls it, of a coroutine function that takes opened stores."""

    def run(new_stores: NewStores, tmp_path: Path) -> None:
        asyncio.run(_run(test, new_stores(tmp_path)))

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    run.__module__ = test.__module__
    return run


async def _run(test: Callable[[Stores], Awaitable[None]], stores: Stores) -> None:
    await stores.open()
    try:
        await test(stores)
    finally:
        await stores.close()
