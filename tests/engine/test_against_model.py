"""Random workflows × random events, judged by the naive model after every event (G2, G3, G4, G5).

What is compared after each event is in `Lane`: states, attempts, outputs, what was dispatched and with which config,
the history, the timer; that what was committed is all there is; and that something will make the execution go on.
"""

from __future__ import annotations

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from penstock.engine import events as ev
from tests.engine.lane import EXECUTION_ID
from tests.engine.story import Story, bring_to_an_end
from tests.engine.workflows import Workflow, workflows

MOST_EVENTS = 30
thorough = settings(
    deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def tell_a_story(data: st.DataObject, workflow: Workflow, *extras: str) -> None:
    story = Story(data, workflow, extras)
    story.tell(ev.ExecutionStarted(EXECUTION_ID))
    for _ in range(data.draw(st.integers(0, MOST_EVENTS))):
        if story.steady.ended and story.one_in(2):
            break
        story.go_on()
    for lane in story.lanes:
        bring_to_an_end(lane, story.now)
    event(story.steady.model.execution)


@settings(thorough, max_examples=500)
@given(st.data(), workflows())
def test_every_event_has_the_effect_that_the_design_says(data, workflow):
    tell_a_story(data, workflow)


@settings(thorough, max_examples=400)
@given(st.data(), workflows())
def test_pausing_and_cancelling_have_the_effect_that_the_design_says(data, workflow):
    tell_a_story(data, workflow, "pause", "cancel")


@settings(thorough, max_examples=200)
@given(st.data(), workflows(queue_timeouts=True))
def test_waiting_in_a_queue_ends_when_the_design_says(data, workflow):
    tell_a_story(data, workflow)


@settings(thorough, max_examples=500)
@given(st.data(), workflows())
def test_large_outputs_and_added_nodes_change_nothing_of_that(data, workflow):
    tell_a_story(data, workflow, "blobs", "pause", "add")
