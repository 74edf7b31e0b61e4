"""A soak: mixed load through the API, random faults from a printed seed.

Nothing is lost, and nothing grows.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest

from tests.acceptance.outside import begin, caller, complaints, say, unfinished
from tests.acceptance.people import people
from tests.acceptance.plant import END_SECONDS, SOON_DEAD, Plant, Role, open_plant
from tests.acceptance.plant_judge import Verdict, judge
from tests.acceptance.soaking import FAULTS, FEW_FAULTS, KINDS, ORDERS_MIN, Soak, figures
from tests.faults.samples import Trend
from tests.faults.table import Fault
from tests.waiting import until

SOAK_SECONDS = 7.0
MORE_FILES = 30
"""How many more files a role may have open at the end: idle connections."""
FIXED = {
    "lease",
    "inbox",
    "wake",
    "events",
    "queues",
    "tasks",
    "store",
    "beats",
    "workers",
    "orchestrators",
}


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.fault("soak", "mixed load and random faults")
def test_a_soak_with_random_faults_loses_nothing_and_leaves_nothing_behind(
    fault: Fault, request: pytest.FixtureRequest
) -> None:
    minutes = request.config.getoption("--minutes")
    seconds = 60 * minutes if minutes else SOAK_SECONDS
    say(f"seed {fault.seed}, {seconds / 60:g} minutes")
    with open_plant(own_postgres=bool(minutes), environ={} if minutes else SOON_DEAD) as plant:
        begin(plant, orchestrators=2, workers=2, apis=2)
        lasting_roles = [plant.one(kind) for kind in ("orchestrator", "worker", "api")]
        before = {role.name: figures(role) for role in lasting_roles}

        async def main() -> tuple[Soak, Verdict]:
            async with caller() as calls, plant.client() as client, people(client.service):
                soak = Soak(plant, calls, fault.choices(), lasting_roles, seconds)
                await soak.run(FAULTS if minutes else FEW_FAULTS, rests=bool(minutes))
                return soak, await _judged(plant, calls.accepted, calls.refused, soak)

        soak, verdict = asyncio.run(main())
        _assert_bounded(lasting_roles, before)
        _assert_only_fixed_keys(plant)
        assert not (unexpected_lines := complaints(plant)), unexpected_lines[0]
        trends = soak.samples.trends() if soak.samples.series else []
        fault.shows(
            minutes=seconds / 60,
            faults=soak.faults.total(),
            **verdict.figures(),
            **{
                f"growth_of_{trend.name}": f"{trend.growth:+.1f} (at most {trend.bound:g})"
                for trend in trends
            },
        )
        _assert_flat(trends)


async def _judged(plant: Plant, accepted: dict[str, Any], refused: int, soak: Soak) -> Verdict:
    say(f"faults: {dict(soak.faults)}; {len(accepted)} orders accepted, {refused} refused")
    async with plant.client() as client:
        await client.until_ended(*accepted)
    await until(
        lambda: unfinished(plant) == 0, "also those whose acceptance was lost", seconds=END_SECONDS
    )
    verdict = judge(plant, accepted, KINDS, lossy=True).assert_guarantees()
    assert verdict.states().keys() == {"COMPLETED"}
    assert len(accepted) >= ORDERS_MIN
    await until(
        lambda: _names_in(plant, "beats") == len(plant.running("worker")), "the dead are forgotten"
    )
    return verdict


def _assert_bounded(lasting_roles: list[Role], before: dict[str, tuple[int, float]]) -> None:
    for role in lasting_roles:
        (files, memory), (files_before, memory_before) = figures(role), before[role.name]
        say(
            f"{role.name}: {files_before} files and {memory_before:.0f} MB before, {files} and "
            f"{memory:.0f} after"
        )
        assert files <= files_before + MORE_FILES


def _assert_flat(trends: list[Trend]) -> None:
    """What is measured has no slope: growth over the run stays under what noise explains."""
    for trend in trends:
        say(str(trend))
    assert [str(trend) for trend in trends if not trend.is_flat] == []


def _names_in(plant: Plant, what: str) -> int:
    with plant.connect_redis() as link:
        return int(link.hlen(f"penstock:{{fleet}}:{what}"))


def _assert_only_fixed_keys(plant: Plant) -> None:
    """Keys that every store has, whatever it has been through.

    None belongs to an execution, or to a process that has ended.
    """
    with plant.connect_redis() as link:
        keys = [key.decode() for key in link.scan_iter(match="*", count=1000)]
        streams = [key for key in keys if ":tasks:" in key]
        consumers = max(len(link.xinfo_consumers(key, "workers")) for key in streams)
        memory: Any = link.info("memory")
    count_by_kind = Counter(re.sub(r"^penstock:\{\w+\}:(\w+).*", r"\1", key) for key in keys)
    say(
        f"keys in Redis: {dict(count_by_kind)}; at most {consumers} consumers of a stream; "
        f"{memory['used_memory'] / 1e6:.1f} MB"
    )
    assert count_by_kind.keys() <= FIXED
    assert consumers <= len(plant.running("worker"))
