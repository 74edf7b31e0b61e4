"""Random workflows × random events, judged by the naive model after every event (G2, G3, G4, G5).

Three lanes get the same events: an owner that is never lost, a new owner after every event (a crash at every point),
and commits so small that every decision is split, with owners lost at random.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, event as observe, given, note, settings
from hypothesis import strategies as st

from penstock.engine import events as ev
from penstock.engine.events import AddedNode, Blob, TaskError
from tests.engine.lane import EXECUTION_ID, Lane
from tests.engine.workflows import TASK_OUTPUTS, Workflow, workflows

thorough = settings(
    deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
MOST_EVENTS = 30


class Story:
    """What happens to one execution, told to every lane."""

    def __init__(self, data: st.DataObject, workflow: Workflow, extras: tuple[str, ...]) -> None:
        self.data, self.extras, self.workflow = data, extras, workflow
        self.blobs: dict[str, bytes] = {}
        self.steady = Lane(workflow, self.blobs)
        self.reborn = Lane(workflow, self.blobs)
        self.split = Lane(workflow, self.blobs, weight=data.draw(st.integers(1, 4)))
        self.now = 0.0
        self.sent: list[ev.AnyEvent] = []
        self.added = 0

    def tell(self, event: ev.AnyEvent) -> None:
        note(f"{self.now:g}: {event}")
        self.sent.append(event)
        for lane in (self.steady, self.reborn, self.split):
            lane.diverged |= lane.unfinished
            lane.handle(event, self.now)
        self.reborn.lose_the_owner(self.now)
        if self.one_in(4):
            self.split.lose_the_owner(self.now)
        if not self.one_in(3):
            for lane in (self.steady, self.reborn, self.split):
                lane.finish_commits(self.now)
        self.assert_lanes_agree()

    def assert_lanes_agree(self) -> None:
        """As long as the order of starts made no difference, nothing else may differ either."""
        steady = self.steady
        for lane in (self.reborn, self.split):
            if steady.unfinished or lane.unfinished:
                continue
            lane.diverged |= steady.diverged or (lane.model.state, lane.model.attempt) != (steady.model.state, steady.model.attempt)
            assert lane.diverged or story_of(lane) == story_of(steady)

    def one_in(self, n: int) -> bool:
        return self.data.draw(st.integers(0, n - 1)) == n - 1

    def any_of(self, *choices: Any) -> Any:
        return self.data.draw(st.sampled_from(choices))

    def go_on(self) -> None:
        model = self.steady.model
        held = [name for name, state in model.state.items() if state in {"QUEUED", "RUNNING"}]
        kinds = ["timer"] * 4 + ["again"] * 2 + ["stale", "start", *self.extras]
        if held:
            kinds += ["succeeded"] * 8 + ["failed"] * 5 + ["lost"] * 2 + ["started"] * 4
        if model.execution == "PAUSED":
            kinds += ["resume"] * 6
        self.now += self.any_of(0.0, 0.0, 0.5, 1.0, 4.0)
        kind = self.any_of(*kinds)
        self.tell(self.task_event(kind, self.any_of(*held)) if kind in TASK_KINDS else self.other_event(kind))

    def task_event(self, kind: str, name: str, off: int = 0, generation: int = 1) -> ev.AnyEvent:
        about = (EXECUTION_ID, name, generation, self.steady.model.attempt[name] + off, "worker")
        match kind:
            case "started":
                return ev.TaskStarted(*about, started_at=self.now - self.any_of(0.0, 1.0, -1.0))
            case "succeeded":
                return ev.TaskSucceeded(*about, started_at=self.now, output=self.output())
            case "failed":
                asked = self.any_of(None, None, 0.0, 7.0)
                error, retryable = TaskError("handler", "no luck"), not self.one_in(4)
                return ev.TaskFailed(*about, started_at=self.now, error=error, retryable=retryable, retry_after=asked)
        return ev.TaskLost(*about)

    def other_event(self, kind: str) -> ev.AnyEvent:
        match kind:
            case "timer":
                return self.timer()
            case "again":
                return self.any_of(*self.sent)
            case "stale":
                name = self.any_of(*self.steady.model.nodes)
                off, generation = self.any_of((-1, 1), (1, 1), (0, 0), (0, 2))
                return self.task_event(self.any_of(*TASK_KINDS), name, off, generation)
            case "pause":
                return ev.PauseRequested(EXECUTION_ID)
            case "resume":
                return ev.ResumeRequested(EXECUTION_ID)
            case "cancel":
                return ev.CancelRequested(EXECUTION_ID)
            case "add":
                return self.node_added()
        return ev.ExecutionStarted(EXECUTION_ID)

    def timer(self) -> ev.TimerFired:
        """On time, too early, or so late that several are due at once."""
        timer = self.steady.committed.timer
        if timer is not None:
            self.now = max(self.now, timer + self.any_of(0.0, 0.0, -0.5, 4.0))
        return ev.TimerFired(EXECUTION_ID)

    def output(self) -> bytes | Blob:
        text = msgspec.json.encode(self.any_of(*TASK_OUTPUTS))
        if "blobs" not in self.extras or self.one_in(4):
            return text
        key = f"blob-{len(self.blobs)}"
        self.blobs[key] = text
        return Blob(key, len(text))

    def node_added(self) -> ev.NodesAdded:
        model = self.steady.model
        self.added += 1
        known = list(model.nodes)
        parents = self.data.draw(st.lists(st.sampled_from(known), unique=True, min_size=1, max_size=2))
        like = self.any_of(*(node.name for node in self.workflow.nodes))
        return ev.NodesAdded(EXECUTION_ID, (AddedNode(f"{like}[{self.added}]", like, tuple(parents)),))


TASK_KINDS = ("started", "succeeded", "failed", "lost")


def story_of(lane: Lane) -> Any:
    runs = lane.execution.runs.values()
    record = lane.execution.record
    errors = {run.address: [(failure.attempt, failure.error) for failure in run.failures] for run in runs}
    return {run.address: (run.state, run.attempt, run.reason) for run in runs}, errors, record.failing


def bring_to_an_end(lane: Lane, now: float) -> None:
    """From any point, with workers that succeed and timers that fire, everything ends."""
    for _ in range(300):
        lane.finish_commits(now)
        if lane.ended:
            return
        if lane.model.execution == "PENDING":
            lane.handle(ev.ExecutionStarted(EXECUTION_ID), now)
        elif lane.model.execution == "PAUSED":
            lane.handle(ev.ResumeRequested(EXECUTION_ID), now)
        elif lane.handed_out:
            name, attempt = min(lane.handed_out)
            about = (EXECUTION_ID, name, 1, attempt, "worker")
            lane.handle(ev.TaskSucceeded(*about, started_at=now, output=b'{"value":1}'), now)
        else:
            assert lane.committed.timer is not None
            now = max(now, lane.committed.timer)
            lane.handle(ev.TimerFired(EXECUTION_ID), now)
    raise AssertionError("it doesn't end")


def tell_a_story(data: st.DataObject, workflow: Workflow, *extras: str) -> None:
    story = Story(data, workflow, extras)
    story.tell(ev.ExecutionStarted(EXECUTION_ID))
    for _ in range(data.draw(st.integers(0, MOST_EVENTS))):
        if story.steady.ended and story.one_in(2):
            break
        story.go_on()
    for lane in (story.steady, story.reborn, story.split):
        bring_to_an_end(lane, story.now)
    observe(story.steady.model.execution)


@settings(thorough, max_examples=300)
@given(st.data(), workflows())
def test_every_event_has_the_effect_that_the_design_says(data, workflow):
    tell_a_story(data, workflow)


@settings(thorough, max_examples=200)
@given(st.data(), workflows())
def test_pausing_and_cancelling_have_the_effect_that_the_design_says(data, workflow):
    tell_a_story(data, workflow, "pause", "pause", "cancel")


@settings(thorough, max_examples=150)
@given(st.data(), workflows(queue_timeouts=True))
def test_waiting_in_a_queue_ends_when_the_design_says(data, workflow):
    tell_a_story(data, workflow)


@settings(thorough, max_examples=200)
@given(st.data(), workflows())
def test_large_outputs_and_added_nodes_change_nothing_of_that(data, workflow):
    tell_a_story(data, workflow, "blobs", "pause", "add", "add")
