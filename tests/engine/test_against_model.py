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
from tests.sizes import IS_FULL, explored, size

# A pause stops the clock of a queue in a way that the design leaves open, so stories have one or
# the other.
KINDS = {
    "plain": (),
    "pausing and cancelling": ("pause", "pause", "cancel"),
    "waiting in queues": ("queue timeouts",),
    "large outputs": ("blobs", "pause"),
    "losses of the hot store": ("losses", "blobs", "pause", "cancel"),
    "losses, and waiting in queues": ("losses", "reused", "queue timeouts"),
    "caught failures": ("catches", "pause", "cancel"),
    "caught failures and early ends": ("catches", "terminates", "reused", "losses", "cancel"),
    "clean-up and early ends": ("terminates", "pause", "cancel", "cancel"),
    "maps": ("maps", "pause", "cancel"),
    "maps, clean-up and caught failures": ("maps", "catches", "terminates", "pause", "cancel"),
    "maps, large outputs and losses": ("maps", "losses", "blobs", "pause", "cancel"),
    "waits": ("waits", "signal", "signal", "signal", "pause", "cancel"),
    "waits, losses and early ends": ("waits", "signal", "signal", "losses", "blobs", "terminates"),
    "maps and waits": ("maps", "waits", "signal", "signal", "pause", "cancel"),
    "loops": ("loops", "pause", "cancel"),
    "maps and loops": ("maps", "loops", "pause", "cancel"),
    "maps, loops, waits and losses": (
        "maps",
        "loops",
        "waits",
        "signal",
        "signal",
        "losses",
        "blobs",
        "pause",
        "cancel",
    ),
    "items and rounds reused of an earlier execution": (
        "maps",
        "loops",
        "reused",
        "blobs",
        "pause",
        "cancel",
        "losses",
    ),
    "outputs reused of an earlier execution": ("reused", "blobs", "pause", "cancel"),
}
OF_WORKFLOWS = ("queue timeouts", "terminates", "catches", "maps", "loops", "waits")
"""What the workflow has; the rest happens to it."""
stories = pytest.mark.parametrize("extras", KINDS.values(), ids=KINDS.keys())
LONG_STORY_NODES = size(short=12, full=20)
thorough = settings(
    deadline=None,
    print_blob=True,
    # the same examples in each run of `make test`; `make explore` looks for others
    derandomize=not IS_FULL,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def tell_a_story(choose: Choices, extras: tuple[str, ...], nodes: int, events: int) -> None:
    workflow = random_workflow(
        choose,
        nodes,
        queue_timeouts="queue timeouts" in extras,
        terminates="terminates" in extras,
        catches="catches" in extras,
        maps="maps" in extras,
        loops="loops" in extras,
        waits="waits" in extras,
    )
    note(repr(workflow))
    story = Story(choose, workflow, [extra for extra in extras if extra not in OF_WORKFLOWS])
    story.tell(ev.ExecutionStarted(EXECUTION_ID))
    for _ in range(events):
        if story.steady.ended and choose.one_in(4):
            break
        story.go_on()
    for replica in story.replicas:
        bring_to_an_end(replica, story.now)


@explored
@stories
@settings(thorough, max_examples=size(short=25, full=400))
@given(st.data(), st.integers(1, 12))
def test_every_event_has_the_effect_that_the_design_says(extras, data, events):
    """Fails with the shortest story."""
    tell_a_story(Choices(lambda n: data.draw(st.integers(0, n - 1))), extras, 6, events)


@explored
@stories
@settings(thorough, max_examples=size(short=75, full=2000))
@given(st.integers(0, 2**32 - 1))
def test_every_event_of_a_long_story_has_the_effect_that_the_design_says(extras, seed):
    tell_a_story(Choices(Random(seed).randrange), extras, LONG_STORY_NODES, 60)
