"""An engine that is closed while other tasks start executions.

It is in a process of its own, and each start is answered or refused. What was answered runs, in
this life of the process or in the next. Nobody waits for ever.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.table import Fault

PROCESS_SECONDS = 60.0
PROGRAM = """
import asyncio, json, sys
from penstock import Engine, NotOpen

NODES = [{"id": "a", "handler": "noop"}, {"id": "b", "handler": "noop", "dependencies": ["a"]}]
FLOW = {"name": "short", "nodes": NODES}
address, delay = sys.argv[1], float(sys.argv[2])

async def main():
    engine = Engine(address)
    answered, refused = [], 0

    async def start_until_refused():
        nonlocal refused
        while True:
            try:
                execution = await engine.start(FLOW)
            except NotOpen:
                refused += 1
                return
            answered.append(execution.execution_id)

    async with engine:
        callers = [asyncio.create_task(start_until_refused()) for _ in range(20)]
        await asyncio.sleep(delay)
    await asyncio.gather(*callers)
    try:
        await engine.start(FLOW)
    except NotOpen:
        refused += 1
    print(json.dumps({"answered": answered, "refused": refused}))

asyncio.run(main())
"""
FINISH = """
import asyncio, json, sys
from penstock import Engine

async def main():
    async with Engine(sys.argv[1]) as engine:
        results = [await engine.result(execution_id) for execution_id in json.load(sys.stdin)]
    print(sum(result.completed for result in results))

asyncio.run(main())
"""


def run(program: str, *arguments: str, given: str = "") -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.fault(
    "closing",
    "an engine is closed while 20 callers start executions; it is called again after that",
)
def test_a_start_while_the_engine_closes_is_answered_or_refused(
    fault: Fault, tmp_path: Path
) -> None:
    choose = fault.choices()
    answered = refused = completed = 0
    for number in range(fault.size(short=2, full=30)):
        address = f"sqlite:///{tmp_path / str(number)}.db"
        said = json.loads(run(PROGRAM, address, str(choose.random() * 0.3)))
        assert said["refused"] == 21
        assert len(set(said["answered"])) == len(said["answered"])
        completed += int(run(FINISH, address, given=json.dumps(said["answered"])))
        answered += len(said["answered"])
        refused += said["refused"]
    assert completed == answered
    in_memory = json.loads(run(PROGRAM, "memory://", "0.05"))
    assert in_memory["refused"] == 21
    fault.shows(answered=answered, completed=completed, refused=refused)
