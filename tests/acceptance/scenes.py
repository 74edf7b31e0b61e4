"""A plant with a client, from which a server is taken away.

This is common to the tests with Redis and with PostgreSQL.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from penstock.errors import StoreUnavailable
from penstock.local.server import Server
from tests.acceptance import works
from tests.acceptance.outside import Caller, Effort, begin, caller, complaints, say, wrong_attempts
from tests.acceptance.people import people
from tests.acceptance.plant import END_SECONDS, Client, Plant
from tests.acceptance.plant_judge import Verdict, judge
from tests.faults.table import Fault
from tests.waiting import until

SHORT_SECONDS = 2
"""How long a server is away in `make test`."""
BUSY_SHARE = 0.5
"""Of a core: a role that waits for a server should be far below, one in a loop is far above."""
PAUSED = 30
FULL_SECONDS = 600
"""For everything to end, at full size."""
RECOVERY_SECONDS = 10
"""At full size: a lease, and the five seconds that FAULTS gives."""
STOPPED, KILLED = "stopped", "killed"


class Scene(NamedTuple):
    plant: Plant
    address: str
    """Of the API."""
    client: Client
    caller: Caller
    fault: Fault


def play(
    fault: Fault, opened: AbstractContextManager[Plant], act: Callable[[Scene], Awaitable[None]]
) -> None:
    with opened as plant:
        (api,) = begin(plant, apis=1)

        async def main() -> None:
            async with plant.client() as client, caller() as calls, people(client.service):
                await act(Scene(plant, api.ready(), client, calls, fault))

        asyncio.run(main())


def pausing(word: str) -> dict[str, Any]:
    """A document of three nodes around a pause.

    A node that is done soon, one that runs until the test releases it, and one after it.
    """
    pauses = works.node("p", "o", "work_pause", config={"until": word})
    return works.document(word, works.node("o"), pauses, works.node("q", "p"))


def paused(plant: Plant, event: str, ids: Collection[str]) -> int:
    """How many of the nodes `p` have begun, or are done."""
    return sum(
        call.node == "p" and call.event == event and call.execution_id in ids
        for call in plant.calls()
    )


def is_open(client: Client) -> bool:
    try:
        client.stores.hot.check_open()
    except StoreUnavailable:
        return False
    return True


async def pause(scene: Scene, word: str) -> list[str]:
    """Executions that run until they hear the word."""
    await until(lambda: is_open(scene.client), "the client's own stores take writes")
    ids = await scene.client.submit(pausing(word), PAUSED)
    await until(lambda: paused(scene.plant, "begun", ids) == PAUSED, "all of them run")
    return ids


def take_away(server: Server, how: str) -> None:
    if how == KILLED:
        server.kill()
    else:
        server.stop()


async def assert_all_guarantees(scene: Scene, *, lossy: bool = False) -> Verdict:
    """Wait until all accepted executions have completed, and judge them.

    Each attempt was called once unless Redis was `lossy`, and there is no extra attempt.
    """
    fault, accepted = scene.fault, {**scene.client.accepted, **scene.caller.accepted}
    seconds = fault.size(short=int(END_SECONDS), full=FULL_SECONDS)
    await scene.client.until_ended(*accepted, seconds=seconds)
    await scene.client.until_all_ended(seconds)
    judged = judge(scene.plant, accepted, [works.diamond()], lossy=lossy, slots=fault.is_full)
    verdict = judged.assert_guarantees()
    assert verdict.states().keys() == {"COMPLETED"}
    assert wrong_attempts(verdict, accepted) == []
    assert not (unexpected_lines := complaints(scene.plant)), unexpected_lines[0]
    figures = {
        name: figure
        for name, figure in verdict.figures().items()
        if name not in ("executions", "missing")
    }
    fault.shows(
        accepted=len(accepted),
        completed=verdict.states()["COMPLETED"],
        missing=0,
        answered_503=scene.caller.refused,
        **figures,
    )
    return verdict


async def taken_again(scene: Scene, bring_back: Callable[[], Any]) -> None:
    """Orders are, and what ran when the server went is over, soon after it is back."""
    bring_back()
    begun = time.monotonic()
    await scene.caller.until_accepted(scene.address, works.diamond())
    seconds = time.monotonic() - begun
    assert seconds <= scene.fault.size(short=int(END_SECONDS), full=RECOVERY_SECONDS)
    scene.fault.shows(open_again_after_seconds=seconds)


async def refused_meanwhile(scene: Scene) -> Any:
    """While a server is away: what is new is told to come again."""
    refusal = await scene.caller.until_refused(scene.address, works.diamond())
    assert int(refusal.headers["Retry-After"]) >= 1
    assert refusal.body["code"] == "unavailable"
    return refusal


async def idle_meanwhile(scene: Scene, effort: Effort, seconds: int) -> None:
    """Nobody is busy with waiting."""
    shares = await effort.until_lasted(seconds)
    say(f"shares of a core meanwhile: {shares}")
    assert max(shares.values()) < BUSY_SHARE
    scene.fault.shows(away_seconds=effort.seconds, busiest_share_of_a_core=max(shares.values()))
