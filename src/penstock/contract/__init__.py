"""The contract suite: what every store must do, as tests that anybody can run on their own store.

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
- `live_logs`: what running tasks have logged so far.
- `cold`: intents, control requests, what has ended.
- `triggering`: executions that wait for their trigger.
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
"""Makes empty stores, not opened yet, which may keep files in the given folder.

Called once for each test.
"""

TOPICS = (
    "blobs",
    "cold",
    "commit",
    "counts",
    "dead_letters",
    "definitions",
    "feed",
    "forgetting",
    "handlers",
    "idempotency",
    "inbox",
    "keys_and_audit",
    "leases",
    "live_logs",
    "priority",
    "search",
    "task_queue",
    "triggering",
)
"""The parts of the suite, each a module of this package."""

__all__ = ["TOPICS", "NewStores", "contract_tests"]


def contract_tests(stores: Mapping[str, NewStores], *topics: str) -> dict[str, Callable[..., None]]:
    """Tests by name, for the `globals()` of a test file.

    Each runs on all `stores`, which are named in the tests' ids.

    Without `topics` it is the whole suite; with some (`"leases"`, see `TOPICS`) only these.
    """
    try:
        import pytest  # noqa: PLC0415 -- an extra
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the contract suite needs pytest; pip install 'penstock[contract]' brings it"
        ) from None

    tests: dict[str, Callable[..., None]] = {}
    for topic in topics or TOPICS:
        if topic not in TOPICS:
            raise ValueError(
                f"the contract suite has no topic {topic!r}; it has {', '.join(TOPICS)}"
            )
        name = f"{__name__}.{topic}"
        pytest.register_assert_rewrite(
            name
        )  # before it is imported: a failed assert shows its values
        for test in _tests_of(import_module(name)):
            on_each = pytest.mark.parametrize("new_stores", list(stores.values()), ids=list(stores))
            tests[test.__name__] = on_each(_with_new_stores(test))
    return tests


def _tests_of(module: ModuleType) -> list[Any]:
    return [value for name, value in vars(module).items() if name.startswith("test_")]


def _with_new_stores(test: Any) -> Callable[..., None]:
    """A test as pytest calls it, of a coroutine function that takes opened stores."""

    def run(new_stores: NewStores, tmp_path: Path) -> None:
        asyncio.run(_run(test, new_stores(tmp_path)))

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return run


async def _run(test: Callable[[Stores], Awaitable[None]], stores: Stores) -> None:
    await stores.open()
    try:
        await test(stores)
    finally:
        await stores.close()
