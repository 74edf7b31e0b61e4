"""Documents with maps, loops and waits, and what must have come of them.

The last node of each, `join`, returns its config: so a handler has seen the lists as they are
recorded, and a judge compares them with what they must be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from penstock.stores.base import Stored
from tests.acceptance import works
from tests.acceptance.works import Call, document

Json = dict[str, Any]
HOPELESS = 99
"""An item that fails for good; of others so many attempts fail."""
PATIENT = {**works.STEADY, "max_attempts": 150}
"""A task that is claimed when its process is killed has lost an attempt, again and again."""


def node(name: str, parents: Iterable[str] = (), handler: str = "work_note", **fields: Any) -> Json:
    return {**works.node(name, parents, handler, **fields), "retry": PATIENT}


def region(name: str, *parents: str, **fields: Any) -> Json:
    return {"id": name, "dependencies": list(parents), **fields}


def join(*parents: str, **config: Any) -> Json:
    return node("join", parents, "work_echo", config=config)


COUNT = 8
MAPPED = document(
    "mapped",
    region(
        "each",
        for_each=list(range(COUNT)),
        max_parallel=3,
        nodes=[
            node("a"),
            node("b", "a", "work_echo", config={"item": "{{ item }}", "index": "{{ index }}"}),
        ],
    ),
    join("each", list="{{ each }}"),
)
ROWS = [[0, 1], [], [2, 3, 4]]
NESTED = document(
    "nested",
    region(
        "outer",
        for_each=ROWS,
        **{"as": "row"},
        nodes=[
            node("inner", handler="work_echo", for_each="{{ row }}", config={"item": "{{ item }}"}),
            node("sum", ["inner"], "work_echo", config={"row": "{{ inner }}"}),
        ],
    ),
    join("outer", list="{{ outer }}"),
)
FAILING = [0, HOPELESS, 1, HOPELESS, 0]
PARTIAL = document(
    "partial",
    node(
        "each",
        handler="work_fail",
        for_each=FAILING,
        on_item_failure="collect",
        config={"times": "{{ item }}", "hopeless": HOPELESS},
    ),
    join("each", list="{{ each }}"),
)
ROUNDS = 4
LOOP = document(
    "loop",
    node(
        "poll",
        handler="work_echo",
        config={"last": "{{ previous.last ?? 0 }}"},
        repeat={"until": f"round >= {ROUNDS}", "max_rounds": 2 * ROUNDS, "every_seconds": 0.05},
    ),
    join("poll", rounds="{{ poll.rounds }}"),
)


def _waits(node_id: str, **config: Any) -> Json:
    """A node that waits for a signal with a name of its own.

    With one name for two nodes, either could take the other's signal; whoever sends it again with
    the same idempotency key would never send what the other one lacks.
    """
    return {"id": node_id, "handler": "signal", "config": {"name": f"go {node_id}", **config}}


WAITS = document(
    "waits",
    _waits("first"),
    _waits("second", correlation="{{ execution.id }}"),
    {"id": "nap", "handler": "wait", "config": {"seconds": 0.2}},
    {"id": "release", "handler": "approval", "dependencies": ["nap"], "config": {"title": "Go?"}},
    join(
        "first",
        "second",
        "release",
        first="{{ first.payload }}",
        second="{{ second.payload }}",
        by="{{ release.by }}",
    ),
)
DOCUMENTS = (MAPPED, NESTED, PARTIAL, LOOP, WAITS)


def _is_mapped(output: Json) -> bool:
    return output == {"list": [{"item": index, "index": index} for index in range(COUNT)]}


def _is_nested(output: Json) -> bool:
    return output == {"list": [{"row": [{"item": item} for item in row]} for row in ROWS]}


def _is_partial(output: Json) -> bool:
    """Failed items have their error and their place, the others how many attempts they took."""
    if len(output["list"]) != len(FAILING):
        return False
    for index, (times, value) in enumerate(zip(FAILING, output["list"], strict=True)):
        if times == HOPELESS:
            is_right = value["index"] == index and "was to fail" in value["error"]["message"]
        else:
            is_right = value > times
        if not is_right:
            return False
    return True


def _is_loop(output: Json) -> bool:
    return output == {"rounds": ROUNDS}


def _is_waits(output: Json) -> bool:
    """Each of the two nodes has a signal of its own."""
    return output == {"first": "first", "second": "second", "by": "Ada"}


EXPECTED: dict[str, Callable[[Json], bool]] = {
    "mapped": _is_mapped,
    "nested": _is_nested,
    "partial": _is_partial,
    "loop": _is_loop,
    "waits": _is_waits,
}
WORKING: dict[str, set[str]] = {
    "mapped": {f"each[{i}].{name}" for i in range(COUNT) for name in "ab"},
    "nested": {f"outer[{i}].inner[{k}]" for i, row in enumerate(ROWS) for k in range(len(row))}
    | {f"outer[{i}].sum" for i in range(len(ROWS))},
    "partial": {f"each[{i}]" for i in range(len(FAILING))},
    "loop": {f"poll[{number}]" for number in range(1, ROUNDS + 1)},
    "waits": set(),
}
"""By document, the addresses at which handlers have something to do, besides `join`."""


def problems(stored: Stored, begun: Iterable[Call] | None = None) -> list[str]:
    """What is wrong with an execution of one of these documents that has ended.

    `begun` are calls of its handlers.
    """
    name = stored.record.workflow
    if name not in EXPECTED:
        return []
    found: list[str] = []
    output = stored.outputs.get("join")
    if not isinstance(output, bytes) or not EXPECTED[name](msgspec.json.decode(output)):
        found.append(f"its last node was given {output!r}")
    missing = (WORKING[name] | {"join"}) - stored.runs.keys()
    if missing:
        found.append(f"items without a record: {sorted(missing)}")
    if begun is not None:
        called = {call.node for call in begun}
        uncalled = (WORKING[name] | {"join"}) - called
        if uncalled:
            found.append(f"outcomes without a call: {sorted(uncalled)}")
        unknown = called - WORKING[name] - {"join"}
        if unknown:
            found.append(f"calls for no item: {sorted(unknown)}")
    if name == "waits" and len(stored.signals) != _taken(stored):
        found.append(f"{len(stored.signals)} signals, {_taken(stored)} of them taken")
    return found


def _taken(stored: Stored) -> int:
    taken: Counter[int] = Counter()
    for run in stored.runs.values():
        if run.more is not None:
            taken.update(run.more.signals)
            if run.more.signal is not None:
                taken[run.more.signal] += 1
    return taken.total()
