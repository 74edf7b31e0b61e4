"""The kit against real roles.

One process on SQLite, and an API, an orchestrator and a worker on Redis and PostgreSQL.

While somebody with a key of scope `submit` sends all of it, no role takes more than 1 GB with its
children, nobody else waits for more than 250 ms longer than before, and the store grows by no more
than ten times what was sent. `make test` leaves out the attacks that take longest, and `make
faults` does all. Both run it alone: other tests would be delays.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from tests.acceptance.plant import LOOK_SECONDS, pass_time
from tests.faults.table import Fault
from tests.hostile.flood_server import serve_too_much
from tests.hostile.kit import KIT, START, Attack, node
from tests.hostile.roles import Probe, Target, Watch, one_process, three_roles

MIB = 1024 * 1024
MEMORY_BYTES_MAX = 1024 * MIB
DELAY_SECONDS_MAX = 0.25
"""By which a role may answer `/health/live` later than before, and a light execution may end later.
"""
LONGER = {
    "batches of 1,000": {"light": 3.0},
    "a chain of 100,000 nodes": {"light": 1.0, "orchestrator": 0.5, "serve": 0.5},
    "six documents of 30,000 nodes": {"light": 1.0, "orchestrator": 0.5, "serve": 0.5},
}
"""What may be delayed by more during these, and by how much. Nothing is to be added here.

A batch is 2,000 executions that were accepted before: queues are first in, first out. All nodes of
an execution that is timed out end in one commit.
"""
GROWTH_TIMES_MAX = 10
GROWTH_FREE = 40 * MIB
"""How much a store may grow in any case.

By write-ahead logs, the probe's executions, and a config of the largest size, built by doubling.
"""
BASELINE_SECONDS = 1.5
RUN_SECONDS = 2.5
"""After this an execution is cancelled."""
END_SECONDS = 20.0


ONLY_IN_FULL = (
    "9 MB of conditions",
    "a chain of 100,000 nodes",
    "six documents of 30,000 nodes",
    "transforms that take time and memory",
    "a value in the output of 60 nodes",
    "answers without end",
    "templates",
    "batches of 1,000",
)
TRIES = 3
"""An attack is judged by the best of them: the machine may be busy with others."""


class Found(NamedTuple):
    """What an attack did to the others."""

    attack: str
    sent: int
    accepted: int
    """Requests; the others were refused."""
    took: float
    memory: dict[str, int]
    growth: int
    stored_max: int
    delays: dict[str, float]
    """How much longer than before each thing took, at worst."""
    problems: list[str]

    def faults(self) -> list[str]:
        messages = list(self.problems)
        messages += [
            f"{role} took {size // MIB} MiB"
            for role, size in self.memory.items()
            if size > MEMORY_BYTES_MAX
        ]
        for name, seconds in self.delays.items():
            if seconds > LONGER.get(self.attack, {}).get(name, DELAY_SECONDS_MAX):
                messages.append(f"{name} waited {seconds * 1000:.0f} ms")
        if self.growth > self.stored_max:
            messages.append(
                f"the store grew by {self.growth // MIB} MiB; {self.stored_max // MIB} would do"
            )
        return messages

    def __str__(self) -> str:
        memory = " ".join(f"{role} {size // MIB}" for role, size in self.memory.items())
        delays = " ".join(f"{name} {seconds * 1000:.0f}" for name, seconds in self.delays.items())
        return (
            f"{self.attack}: {self.took:.1f} s, sent {self.sent / 1e6:.1f} MB, "
            f"accepted {self.accepted}, store +{self.growth // MIB} MiB, "
            f"memory {memory} MiB, delays {delays} ms"
            + "".join(f"\n    ! {fault}" for fault in self.faults())
        )


class Attacker:
    def __init__(self, target: Target, flood_address: str, session: aiohttp.ClientSession) -> None:
        self.target = target
        self.flood_address = flood_address
        self.session = session
        self.sent = 0
        self.accepted = 0
        self.problems: list[str] = []

    async def post(self, path: str, body: bytes) -> dict[str, Any]:
        """The response if the request was accepted, else None.

        Anything but a clear refusal is a problem.
        """
        self.sent += len(body)
        headers = {"content-type": "application/json"}
        async with self.session.post(
            self.target.api + path, data=io.BytesIO(body), headers=headers
        ) as answer:
            text = await answer.read()
            if answer.status in {200, 201}:
                self.accepted += 1
                return dict(json.loads(text))
            if not 400 <= answer.status < 500 or len(text) > 1_000_000:
                self.problems.append(
                    f"answered {answer.status} with {len(text)} bytes: {text[:200]!r}"
                )
            return {}

    async def send(self, attack: Attack) -> None:
        """All of it at once, and until what was accepted has ended, by itself or by a cancel."""
        answers = await asyncio.gather(
            *(self.post(*post) for post in attack.posts(self.flood_address))
        )
        ids = [
            item["execution_id"]
            for answer in answers
            for item in answer.get("items", [answer])
            if "execution_id" in item
        ]
        running = await self._await_ends(ids, RUN_SECONDS)
        await self._cancel(running)
        running = await self._await_ends(running, END_SECONDS)
        if running:
            self.problems.append(
                f"{len(running)} executions can't be cancelled, such as {running[0]}"
            )

    async def _cancel(self, ids: list[str]) -> None:
        """As an operator, who must be able to."""
        headers = {"authorization": f"Bearer {self.target.keys['operator']}"}
        for first in range(0, len(ids), 500):
            body = {"action": "cancel", "execution_ids": ids[first : first + 500]}
            async with self.session.post(
                f"{self.target.api}{START}/bulk", json=body, headers=headers
            ) as answer:
                if answer.status != 200:
                    self.problems.append(f"a cancel was answered with {answer.status}")

    async def _await_ends(self, ids: list[str], seconds: float) -> list[str]:
        """Those that still run then."""
        wanted = set(ids)
        end = time.monotonic() + seconds
        while (left := await self._running(wanted)) and time.monotonic() < end:
            await pass_time(LOOK_SECONDS)
        return left

    async def _running(self, wanted: set[str]) -> list[str]:
        if not wanted:
            return []
        running = "&".join(f"state={state}" for state in ("PENDING", "RUNNING", "PAUSED"))
        url = f"{self.target.api}{START}?{running}&limit=500"
        async with self.session.get(url) as answer:
            items = (await answer.json())["items"]
        return [item["execution_id"] for item in items if item["execution_id"] in wanted]

    @asynccontextmanager
    async def connections(self, number: int, data: bytes) -> AsyncIterator[list[socket.socket]]:
        """So many, on each of which this is sent."""
        host, _, port = self.target.api.removeprefix("http://").partition(":")
        loop = asyncio.get_running_loop()
        sockets: list[socket.socket] = []
        try:
            for _ in range(number):
                connection = socket.socket()
                connection.setblocking(False)  # noqa: FBT003
                sockets.append(connection)
                await loop.sock_connect(connection, (host, int(port)))
                with suppress(OSError):  # it may hang up before it has read all of it
                    await loop.sock_sendall(connection, data)
            yield sockets
        finally:
            for connection in sockets:
                connection.close()


async def _headers_of_64_mb(attacker: Attacker) -> None:
    lines = b"".join(b"x-%d: " % i + b"x" * 60_000 + b"\r\n" for i in range(20))
    for start in (
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"GET /" + b"a" * 1_000_000,
        b"POST / HTTP/1.1\r\nX: ",
    ):
        async with attacker.connections(4, start) as connections:
            for connection in connections:
                for _ in range(14):
                    try:
                        await asyncio.get_running_loop().sock_sendall(connection, lines)
                    except OSError:  # it hangs up, as it should
                        break


async def _half_sent_requests(attacker: Attacker) -> None:
    body = b"Content-Length: 1000000\r\n\r\n{"
    key = attacker.target.keys["attacker"].encode()
    headers = (
        b"POST /api/v1/executions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + b"\r\n"
    )
    async with (
        attacker.connections(300, b"GET /health HTTP/1.1\r\n"),
        attacker.connections(150, headers + body),
        attacker.session.get(f"{attacker.target.api}/health/live") as answer,
    ):
        assert answer.status == 200


async def _event_streams(attacker: Attacker) -> None:
    key = attacker.target.keys["attacker"].encode()
    request = (
        b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + b"\r\n\r\n"
    )
    async with attacker.connections(300, request):
        definition = {"name": "hostile", "nodes": [node(f"n{i}") for i in range(20)]}
        body = json.dumps({"definition": definition, "executions": [{}] * 100}).encode()
        await attacker.send(Attack("events", lambda _: [(f"{START}/batch", body)]))  # type: ignore[list-item]


async def _node_params(attacker: Attacker) -> None:
    definition = {
        "name": "hostile",
        "nodes": [node(f"n{i}", "echo", config={"x": 1}) for i in range(50)],
    }
    bodies = [
        {"node_params": {f"n{i}": {"x": "x" * 250_000} for i in range(50)}},
        {"node_params": {f"n{i}x": {"x": 1} for i in range(20_000)}},
        {"node_params": {"n1": {f"{{{{ n{i} }}}}": "{{ input }}" for i in range(20_000)}}},
        {f"n{i}x" * 20: {} for i in range(20_000)},
    ]
    for body in bodies:
        answer = await attacker.post("/workflow", json.dumps(definition).encode())
        assert answer, attacker.problems
        execution_id = answer["execution_id"]
        await attacker.post(f"/workflow/trigger/{execution_id}", json.dumps(body).encode())


Raw = Callable[[Attacker], Awaitable[None]]
REQUESTS: dict[str, Raw] = {
    "headers of 64 MB": _headers_of_64_mb,
    "450 half-sent requests": _half_sent_requests,
    "300 event streams": _event_streams,
    "node_params of many MB": _node_params,
}


def _attacks(*, is_full: bool) -> dict[str, tuple[Raw, int]]:
    """Each with how many bytes its handlers bring in."""

    def sending(attack: Attack) -> Raw:
        return lambda attacker: attacker.send(attack)

    kit = {attack.name: (sending(attack), attack.stored_bytes) for attack in KIT}
    every = {**kit, **{name: (raw, 0) for name, raw in REQUESTS.items()}}
    only = os.environ.get("HOSTILE_ONLY", "")
    chosen = {
        name: attack_and_size
        for name, attack_and_size in every.items()
        if any(word in name for word in only.split("|"))
    }
    return {
        name: attack_and_size
        for name, attack_and_size in chosen.items()
        if is_full or only or name not in ONLY_IN_FULL
    }


async def _run(
    target: Target, flood_address: str, probe: Probe, name: str, raw: Raw, brought: int
) -> Found:
    await asyncio.to_thread(probe.pass_seconds, 0.0)
    headers = {"authorization": f"Bearer {target.keys['attacker']}"}
    timeout = aiohttp.ClientTimeout(total=60)
    began = time.monotonic()
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
        attacker = Attacker(target, flood_address, session)
        with Watch(target) as watch:
            await raw(attacker)
            took = time.monotonic() - began
            await asyncio.to_thread(probe.pass_seconds, 0.1)
    stored_max = GROWTH_TIMES_MAX * (attacker.sent + brought) + GROWTH_FREE
    problems = [*attacker.problems[:5], *probe.problems(began)[:5]]
    delays = probe.delays(began)
    measured = Found(
        attack=name,
        sent=attacker.sent,
        accepted=attacker.accepted,
        took=took,
        memory=watch.memory,
        growth=watch.growth,
        stored_max=stored_max,
        delays=delays,
        problems=problems,
    )
    print(measured)  # noqa: T201 -- shown when the test fails
    return measured


async def _judge(
    start: Callable[[str], AbstractContextManager[Target]], folder: Path, fault: Fault
) -> list[str]:
    """The faults of attacks that had some in every try."""
    bad = []
    async with serve_too_much() as flood_address:
        with ExitStack() as stack:
            target = await asyncio.to_thread(stack.enter_context, start(flood_address))
            probe = stack.enter_context(Probe(target, folder))
            await asyncio.to_thread(probe.measure_usual, BASELINE_SECONDS)
            attacks = _attacks(is_full=fault.is_full)
            worst = 0.0
            for name, (raw, brought) in attacks.items():
                measured = await _run(target, flood_address, probe, name, raw, brought)
                for _ in range(TRIES - 1):
                    if measured.faults():
                        measured = await _run(target, flood_address, probe, name, raw, brought)
                if measured.faults():
                    bad.append(str(measured))
                if name not in LONGER:
                    worst = max(worst, *measured.delays.values())
            fault.shows(attacks=len(attacks), longest_delay_milliseconds=round(worst * 1000))
            if bad:
                bad.append(target.logs()[-5000:])
    return bad


@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.fault("security", "hostile documents and requests against every role")
@pytest.mark.parametrize("start", [one_process, three_roles])
def test_the_kit_costs_nobody_else_anything(
    start: Callable[[str], AbstractContextManager[Target]], tmp_path: Path, fault: Fault
) -> None:
    bad = asyncio.run(_judge(start, tmp_path, fault))
    assert not bad, "\n".join(bad)
