"""What the console of `penstock dev` shows of handlers that raise and of executions that end."""

import json
from pathlib import Path

from tests.cli.commands import write
from tests.cli.fleet import asked, started

HANDLERS = """
import penstock

@penstock.handler("ship")
def ship(config, ctx):
    raise ConnectionError("no route to the harbour")
"""
NODE = {
    "id": "parcel",
    "handler": "ship",
    "retry": {"max_attempts": 2, "initial_delay_seconds": 0.01, "jitter_seconds": 0},
}


def test_dev_shows_each_failed_attempt_and_each_end(tmp_path: Path):
    write(tmp_path, {"handlers.py": HANDLERS})
    flags = ("dev", "--port", "0", "--handlers", "handlers.py")
    with started(*flags, cwd=tmp_path, env={"PENSTOCK_LOG_FORMAT": "json"}) as dev:
        address = dev.says("Penstock is ready at").split(" ")[-1]
        ended = asked(
            f"{address}/api/v1/executions?wait=30",
            {"definition": {"name": "order", "nodes": [NODE]}},
        )
        assert ended["state"] == "FAILED"
        dev.says("order@1 FAILED in ")
        assert dev.terminate() == 0

    records = [json.loads(line) for line in dev.output.splitlines() if line.startswith("{")]
    first, last, end = [record for record in records if record["logger"] == "penstock.executions"]
    assert first["event"] == (
        "parcel failed, attempt 1, again in 0.01 s: ConnectionError: no route to the harbour"
    )
    assert (first["level"], "exception" in first) == ("warning", False)
    assert last["event"] == (
        "parcel failed after 2 attempts: ConnectionError: no route to the harbour"
    )
    assert 'handlers.py", line 6, in ship' in last["exception"]
    assert end["execution_id"] == last["execution_id"] == ended["execution_id"]
