"""What happens to one execution, chosen at random and told to every lane."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

import msgspec
from hypothesis import note

from penstock.definition.waits import decision_name
from penstock.engine import events as ev
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.reused_outputs import item_name
from penstock.engine.state import INLINE_BYTES_MAX
from tests.engine.choices import Choices
from tests.engine.model import NothingThere
from tests.engine.replica import EXECUTION_ID, Replica
from tests.engine.workflows import SIGNAL_NAMES, TASK_OUTPUTS, Workflow

TASK_KINDS = ("started", "succeeded", "failed", "lost", "interrupted")
SIMPLE: dict[str, Callable[[str], ev.AnyEvent]] = {
    "start": ev.ExecutionStarted,
    "pause": ev.PauseRequested,
    "resume": ev.ResumeRequested,
    "cancel": ev.CancelRequested,
}


class Story:
    """Replicas with different owners.

    One is never lost; one is replaced after every event; one makes small commits and is lost at
    times. Where there are maps or loops, one is never lost and lets go of their lists at times.
    """

    def __init__(self, choose: Choices, workflow: Workflow, extras: Collection[str]) -> None:
        self.choose, self.extras, self.workflow = choose, extras, workflow
        self.blobs: dict[str, bytes] = {}
        reused = self.reused() if "reused" in extras else {}
        self.steady = Replica(workflow, self.blobs, reused)
        self.reborn = Replica(workflow, self.blobs, reused)
        inline = choose.any_of(
            0, INLINE_BYTES_MAX
        )  # at 0 nearly everything is worked out elsewhere
        self.split = Replica(
            workflow, self.blobs, reused, weight=choose.any_of(1, 2, 3, 4), inline=inline
        )
        self.forgetful: Replica | None = None
        self.replicas = [self.steady, self.reborn, self.split]
        if any(node.is_region for node in workflow.nodes):
            self.forgetful = Replica(workflow, self.blobs, reused)
            self.replicas.append(self.forgetful)
        self.now = 0.0
        self.sent: list[ev.AnyEvent] = []

    def tell(self, event: ev.AnyEvent) -> None:
        note(f"{self.now:g}: {event}")
        self.sent.append(event)
        for replica in self.replicas:
            replica.diverged |= replica.unfinished
            replica.handle(event, self.now)
        self.reborn.lose_the_owner(self.now)
        if self.choose.one_in(4):
            self.split.lose_the_owner(self.now)
        if self.forgetful is not None and not self.choose.one_in(4):
            self.forgetful.let_go_of_lists()
        if not self.choose.one_in(3):
            for replica in self.replicas:
                replica.finish_commits(self.now)
        self.assert_replicas_agree()

    def assert_replicas_agree(self) -> None:
        """As long as the order of starts made no difference, nothing else may differ either."""
        if self.forgetful is not None and not self.blobs:
            assert self.forgetful.committed.history == self.steady.committed.history
        for replica in self.replicas[1:]:
            if self.steady.unfinished or replica.unfinished:
                continue
            replica.diverged |= (
                self.steady.diverged or replica.model.situation() != self.steady.model.situation()
            )
            assert replica.diverged or replica.summary() == self.steady.summary()

    def lose_the_store(self) -> None:
        note(f"{self.now:g}: the store loses its data")
        for replica in self.replicas:
            replica.diverged |= replica.unfinished
            if not replica.ended:
                replica.lose_the_store(self.now)
                replica.finish_commits(self.now)  # nobody reports a task before it is out
        self.assert_replicas_agree()

    def go_on(self) -> None:
        model = self.steady.model
        out = [name for name, state in model.state.items() if state in {"QUEUED", "RUNNING"}]
        claimed = [
            name
            for name in out
            if not any(name in replica.model.again for replica in self.replicas)
        ]
        kinds = (
            ["timer"] * 4
            + ["again"] * 2
            + ["stale", "start", *(set(self.extras) - {"blobs", "reused", "losses", "waits"})]
        )
        if claimed:
            kinds += (
                ["succeeded"] * 8
                + ["failed"] * 6
                + ["lost"] * 2
                + ["interrupted"]
                + ["started"] * 4
            )
        if model.execution == "PAUSED":
            kinds += ["resume"] * 4
        self.now += self.choose.any_of(0.0, 0.0, 0.5, 1.0, 4.0)
        if "losses" in self.extras and self.choose.one_in(6):
            self.lose_the_store()
            return
        kind = self.choose.any_of(*sorted(kinds))
        if kind in TASK_KINDS:
            self.tell(self.task_event(kind, self.choose.any_of(*claimed)))
        else:
            self.tell(self.other_event(kind))

    def task_event(
        self, kind: str, name: str, off: int = 0, generation_off: int = 0
    ) -> ev.AnyEvent:
        generation = self.steady.model.generation + generation_off
        about: Any = {
            "execution_id": EXECUTION_ID,
            "node_id": name,
            "generation": generation,
            "worker_id": "worker",
        }
        about["attempt"] = self.steady.model.attempt[name] + off
        if kind == "started":
            return ev.TaskStarted(**about, started_at=self.now - self.choose.any_of(0.0, 1.0, -1.0))
        if kind == "succeeded":
            return ev.TaskSucceeded(**about, started_at=self.now, output=self.output())
        if kind == "failed":
            about |= {
                "retryable": not self.choose.one_in(3),
                "retry_after": self.choose.any_of(None, None, 0.0, 7.0),
            }
            return ev.TaskFailed(
                **about,
                started_at=self.now,
                error=TaskError(self.choose.any_of("handler", "handler", "http"), "no luck"),
            )
        return ev.TaskLost(**about, interrupted=kind == "interrupted")

    def other_event(self, kind: str) -> ev.AnyEvent:
        if kind == "timer":
            return self.timer()
        if kind == "stale":
            off, generation_off = self.choose.any_of((-1, 0), (1, 0), (0, -1), (0, 1000))
            return self.task_event(
                self.choose.any_of(*TASK_KINDS),
                self.choose.any_of(*self.steady.model.nodes),
                off,
                generation_off,
            )
        if kind == "again":
            again: ev.AnyEvent = self.choose.any_of(*self.sent)
            return again
        if kind == "signal":
            return self.signal()
        return SIMPLE[kind](EXECUTION_ID)

    def signal(self) -> ev.SignalReceived:
        """A new one, or one whose number is known; they may overtake each other."""
        number = self.choose.below(30)
        model = self.steady.model
        asking = [
            name
            for name in model.waits_for
            if model.nodes[name].kind == "approval" and model.state[name] == "WAITING"
        ]
        if asking and self.choose.one_in(2):
            name = decision_name(self.choose.any_of(*asking), 1)
            decision = self.choose.any_of("approved", "approved", "rejected")
            payload = msgspec.json.encode({"decision": decision})
            return ev.SignalReceived(
                EXECUTION_ID, number, name, payload, None, "somebody", self.now
            )
        return ev.SignalReceived(
            EXECUTION_ID,
            number,
            self.choose.any_of(*SIGNAL_NAMES),
            msgspec.json.encode(self.choose.any_of(*TASK_OUTPUTS)),
            self.choose.any_of(None, "a", "b"),
            "somebody",
            self.now,
        )

    def timer(self) -> ev.TimerFired:
        """On time, too early, or so late that several are due at once."""
        timer = self.steady.committed.timer
        if timer is not None:
            self.now = max(self.now, timer + self.choose.any_of(0.0, 0.0, -0.5, 4.0))
        return ev.TimerFired(EXECUTION_ID)

    def output(self) -> Value:
        text = msgspec.json.encode(self.choose.any_of(*TASK_OUTPUTS))
        if "blobs" not in self.extras or self.choose.one_in(4):
            return text
        key = f"blob-{len(self.blobs)}"
        self.blobs[key] = text
        return Blob(key, len(text))

    def reused(self) -> dict[str, Value]:
        """Any nodes at all, and one that the plan doesn't have."""
        names = [node.name for node in self.workflow.nodes]
        chosen = self.choose.some_of(names, self.choose.below(len(names) + 1))
        return {name: self.output() for name in (*chosen, "gone", *self.kept_items(chosen))}

    def kept_items(self, completed: Collection[str]) -> list[str]:
        """Items of maps that didn't complete, by their identities, and rounds."""
        model = self.workflow.model(0.0, {})
        names: list[str] = []
        for node in self.workflow.nodes:
            if not node.is_region or node.name in completed or not self.choose.one_in(2):
                continue
            model.lists[node.name] = list(node.items)
            indexes = range(1, 3) if node.kind == "loop" else range(len(node.items))
            with suppress(NothingThere):
                names += [
                    item_name(node.name, model.identity(node.name, index))
                    for index in indexes
                    if self.choose.one_in(2)
                ]
        return names


def bring_to_an_end(replica: Replica, now: float) -> None:
    """From any point, with workers that succeed and timers that fire, everything ends."""
    for _ in range(3000):
        replica.finish_commits(now)
        if replica.ended:
            return
        if replica.model.execution == "PENDING":
            replica.handle(ev.ExecutionStarted(EXECUTION_ID), now)
        elif replica.model.execution == "PAUSED":
            replica.handle(ev.ResumeRequested(EXECUTION_ID), now)
        elif replica.handed_out:
            name, attempt = min(replica.handed_out)
            key = (EXECUTION_ID, name, replica.model.generation, attempt)
            replica.handle(
                ev.TaskSucceeded(*key, "worker", started_at=now, output=b'{"value":1}'), now
            )
        else:
            assert replica.committed.timer is not None
            now = max(now, replica.committed.timer)
            replica.handle(ev.TimerFired(EXECUTION_ID), now)
    raise AssertionError("it doesn't end")
