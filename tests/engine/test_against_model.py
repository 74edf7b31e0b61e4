"""Random workflows × random events, judged by the naive model after every event (G2, G3, G4, G5).

What is compared after each event is in `Replica`: states, attempts, outputs, what was dispatched
and with which config, the history, the timer; that what was committed is all there is; and that
something will make the execution go on.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from penstock.engine import events as ev
from tests.engine.choices import Choices
from tests.engine.replica import EXECUTION_ID
from tests.engine.story import Story, bring_to_an_end
from tests.engine.workflows import random_workflow
from tests.sizes import explored, size

# A pause stops the clock of a queue in a way that the design leaves open, so stories have one or
# the other.
KINDS = {
    "plain": (),
    "pausing and cancelling": ("pause", "pause", "cancel"),
    "waiting in queues": ("queue timeouts",),
    "large outputs and added nodes": ("blobs", "pause", "add"),
    "losses of the hot store": ("losses", "blobs", "pause", "cancel"),
    "losses, and waiting in queues": ("losses", "reused", "queue timeouts"),
    "outputs reused of an earlier execution": ("reused", "blobs", "pause", "cancel"),
}
stories = pytest.mark.parametrize("extras", KINDS.values(), ids=KINDS.keys())
thorough = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def tell_a_story(choose: Choices, extras: tuple[str, ...], nodes: int, events: int) -> None:
    workflow = random_workflow(choose, nodes, queue_timeouts="queue timeouts" in extras)
    note(repr(workflow))
    story = Story(choose, workflow, [extra for extra in extras if extra != "queue timeouts"])
    story.tell(ev.ExecutionStarted(EXECUTION_ID))
    for _ in range(events):
        if story.steady.ended and choose.one_in(4):
            break
        story.go_on()
    for replica in story.replicas:
        bring_to_an_end(replica, story.now)


@explored
@stories
@settings(thorough, max_examples=size(short=40, full=400))
@given(st.data(), st.integers(1, 12))
def test_every_event_has_the_effect_that_the_design_says(extras, data, events):
    """Fails with the shortest story."""
    tell_a_story(Choices(lambda n: data.draw(st.integers(0, n - 1))), extras, 6, events)


@explored
@stories
@settings(thorough, max_examples=size(short=150, full=2000))
@given(st.integers(0, 2**32 - 1))
def test_every_event_of_a_long_story_has_the_effect_that_the_design_says(extras, seed):
    tell_a_story(Choices(Random(seed).randrange), extras, 20, 60)
