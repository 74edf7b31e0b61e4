"""Judges a plant from outside, without the engine and without store code.

It reads PostgreSQL's rows, Redis's keys and the handlers' own log. Only the codec is ours, because
the stored bytes have to be decoded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import redis

from penstock.engine.commands import DeadLetter
from penstock.stores import codec
from penstock.stores.base import Stored
from penstock.stores.postgres.executions import decode_changes
from tests.acceptance import regions
from tests.acceptance.plant import PARTITIONS, Plant
from tests.acceptance.works import Call
from tests.simulation.judge import ENDS, REBUILT, violations
from tests.waiting import until_now

SELECT = """
    SELECT id, state, ended_at, intent,
      (SELECT array_agg(changes ORDER BY first) FROM segments WHERE segments.n = executions.n)
    FROM executions
"""
LOST = "lost"
SHOWN = 10
LEFTOVER_SECONDS = 40.0
"""How long leftovers may stay: the last workers that died are noticed after 15 s only."""


@dataclass
class Verdict:
    executions: dict[str, Stored] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.counts.items())

    def states(self) -> Counter[str]:
        return Counter(str(stored.record.state) for stored in self.executions.values())

    def reasons(self) -> Counter[str]:
        lines = (line for stored in self.executions.values() for line in stored.history)
        return Counter(line.reason for line in lines if line.reason)

    def redelivered(self) -> int:
        """Attempts after one that was lost with its worker."""
        lines = (line for stored in self.executions.values() for line in stored.history)
        return sum(line.after == "RETRYING" and line.reason == LOST for line in lines)

    def figures(self) -> dict[str, int]:
        """For a row of the table, of a plant whose promises were kept."""
        counts = {
            name: self.counts[name]
            for name in ("executions", "kills", "fenced", "redelivered", "rebuilt")
        }
        nonzero = {name: count for name, count in counts.items() if count}
        return {**nonzero, "missing": 0, "violations": len(self.problems)}

    def assert_guarantees(self) -> Verdict:
        """All invariants. Prints what happened, for those who want to know."""
        print(f"\n{self}")  # noqa: T201 -- the issue asks for these figures
        first_problems = "\n".join(self.problems[:SHOWN])
        assert self.problems == [], f"{len(self.problems)} problems; {self}\n{first_problems}"
        return self


def judge(
    plant: Plant,
    accepted: Mapping[str, dict[str, Any]],
    documents: Iterable[dict[str, Any]] = (),
    *,
    lossy: bool = False,
    slots: bool = False,
) -> Verdict:
    """`documents`: what else may run, because answers got lost.

    `lossy`: Redis has lost data, so that handlers may have done what no record tells any more.
    `slots`: whether to wait until every worker has said that its hands are empty, which it does
    every five seconds.
    """
    verdict = Verdict()
    _read(plant, verdict)
    problems = verdict.problems
    problems += [
        f"accepted and missing: {name}" for name in accepted if name not in verdict.executions
    ]
    calls = plant.calls()
    by_execution: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.event == "begun":
            by_execution[call.execution_id].append(call)
    document_by_name = {document["name"]: document for document in documents}
    for name, stored in verdict.executions.items():
        document = accepted.get(name, document_by_name.get(stored.record.workflow))
        violations_here = _problems(stored, document, by_execution[name], counts_calls=not lossy)
        problems += [f"{name}: {problem}" for problem in violations_here]
    problems += _left_over(plant, slots=slots)
    verdict.counts = {
        "executions": len(verdict.executions),
        **verdict.states(),
        "calls": sum(map(len, by_execution.values())),
        "kills": plant.kills,
        "fenced": plant.fenced,
        "redelivered": verdict.redelivered(),
        "rebuilt": verdict.reasons()[REBUILT],
        "letters": len(verdict.dead_letters),
        "problems": len(problems),
    }
    return verdict


def _read(plant: Plant, verdict: Verdict) -> None:
    with plant.connect() as connection:
        for name, state, ended_at, intent, segments in connection.execute(SELECT):
            counts = decode_changes(segments)
            stored = codec.fold(
                codec.decode_record(intent), [codec.decode_change(change) for change in counts]
            )
            verdict.executions[name] = stored
            if state != stored.record.state or ended_at is None:
                verdict.problems.append(
                    f"{name}: the row says {state} ended at {ended_at}, the archive "
                    f"{stored.record.state}"
                )
        rows = connection.execute("SELECT dead_letter FROM dead_letters ORDER BY id").fetchall()
        verdict.dead_letters = [codec.decode_dead_letter(dead_letter) for (dead_letter,) in rows]


def _problems(
    stored: Stored, document: dict[str, Any] | None, begun: list[Call], *, counts_calls: bool
) -> list[str]:
    if document is None:
        return ["nobody was told of it"]
    notes = (
        [(call.execution_id, call.node, call.attempt) for call in begun] if counts_calls else None
    )
    problems = violations(stored, document, notes)
    open_nodes = {node["id"] for node in document["nodes"]} - {
        name for name, run in stored.runs.items() if run.state in ENDS
    }
    problems += regions.problems(stored, begun if counts_calls else None)
    if open_nodes:
        problems.append(f"nodes without an outcome: {sorted(open_nodes)[:SHOWN]}")
    return problems


def _left_over(plant: Plant, *, slots: bool) -> list[str]:
    """Also what may take a little: the archive's last word, a dead worker's name."""
    problems: list[str] = []

    def is_empty() -> bool:
        problems[:] = left_in_redis(plant) + (busy_slots(plant) if slots else [])
        return not problems

    try:
        until_now(is_empty, seconds=LEFTOVER_SECONDS)
    except AssertionError:
        return problems
    return []


def left_in_redis(plant: Plant) -> list[str]:
    """What a plant at rest must not have.

    Tasks, events, timers, active or held executions, unsent archives.
    """
    leftovers: list[str] = []
    with plant.connect_redis() as link:
        for partition in range(PARTITIONS):
            leftovers += _left_in_partition(link, f"penstock:{{{partition}}}:")
    return leftovers


def busy_slots(plant: Plant) -> list[str]:
    """Workers with busy slots, by their last heartbeats.

    A dead worker sends none and is forgotten soon.
    """
    with plant.connect_redis() as link:
        said: dict[bytes, bytes] = link.hgetall("penstock:{fleet}:workers")
    running = {_text(name): msgspec.json.decode(about)["running"] for name, about in said.items()}
    return [f"{name} has {count} tasks in its hands" for name, count in running.items() if count]


def _left_in_partition(link: redis.Redis, prefix: str) -> list[str]:
    leftovers: list[str] = []
    for raw in link.scan_iter(match=prefix + "*", count=1000):
        key = _text(raw)
        what = key.removeprefix(prefix).partition(":")[0]
        if what == "tasks":
            pending: Any = link.xpending(key, "workers")
            entries = link.xlen(key)
            if entries:
                held = pending["pending"]
                leftovers.append(f"{key} has {entries} entries, {held} of them held")
            elif pending["pending"]:
                leftovers.append(f"{key} has pending entries that are gone")
        elif what in ("inbox", "outbox", "timers", "active", "held", "execution", "onhold"):
            size = _size(link, key, what)
            if size:
                leftovers.append(f"{key} has {size}")
    return leftovers


def _size(link: redis.Redis, key: str, what: str) -> int:
    if what == "inbox":
        return _unread(link, key)
    kind = _text(link.type(key))
    sizes: dict[str, Any] = {
        "list": link.llen,
        "set": link.scard,
        "zset": link.zcard,
        "hash": link.hlen,
        "stream": link.xlen,
    }
    return int(sizes[kind](key)) if kind in sizes else 0


def _unread(link: redis.Redis, key: str) -> int:
    """Inbox entries behind the committed position.

    One that is handled may still be there until the next commit.
    """
    position = int(link.hget(key.removesuffix("inbox") + "lease", "position") or 0)
    done = position // 1024 - 1 if position % 1024 == 1023 else position // 1024 - 2
    entries: Any = link.xrange(key, min=f"1-{max(done + 1, 0)}")
    return len(entries)


def _text(raw: Any) -> str:
    return raw.decode() if isinstance(raw, bytes) else str(raw)
