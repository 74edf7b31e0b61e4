"""Nodes that run another workflow: what starts a child, and what its end does."""

from __future__ import annotations

from typing import Any

from penstock.engine.children import Found, child_id, start_of
from penstock.engine.commands import ControlChild, ExecutionRecord, StartChild
from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState
from penstock.engine.transitions import fail_from_records
from tests.engine.trial import ID, Trial, node, once


def bill(*dependencies: str, **fields: Any) -> dict[str, Any]:
    config = fields.pop("config", {"workflow": "billing@stable", "input": {"sum": 5}})
    return node("bill", *dependencies, handler="workflow", config=config, **fields)


def cancels(trial: Trial) -> list[tuple[str, str]]:
    """The children that are cancelled, and why."""
    return [
        (send.execution_id, send.reason)
        for send in trial.sends
        if isinstance(send, ControlChild) and send.request == "cancel"
    ]


def starts(trial: Trial) -> list[ExecutionRecord]:
    return [send.record for send in trial.sends if isinstance(send, StartChild)]


def test_a_child_is_asked_for_before_it_begins_and_its_output_is_the_node_s():
    trial = Trial(bill(), node("tell", "bill", config={"sum": "{{ bill.paid }}"}))
    (lookup,) = trial.execution.lookups.values()
    assert (lookup.reference, lookup.pinned, lookup.input) == ("billing@stable", None, {"sum": 5})
    assert trial.states == {"bill": "PENDING", "tell": "PENDING"}

    trial.find()
    assert trial.states == {"bill": "WAITING", "tell": "PENDING"}
    (record,) = starts(trial)
    assert (record.workflow, record.version, record.input) == ("billing", 7, b'{"sum":5}')
    assert record.execution_id == trial.child("bill")
    assert trial.tasks == []

    trial.child_ended("bill", output={"paid": 5})
    assert trial.states == {"bill": "COMPLETED", "tell": "QUEUED"}
    assert trial.config("tell") == {"sum": 5}
    lines = [(line.before, line.after) for line in trial.committed.history if line.node_id]
    assert lines[:2] == [("PENDING", "WAITING"), ("WAITING", "COMPLETED")]


def test_a_child_knows_its_parent_and_the_top_of_the_tree():
    trial = Trial(bill(on_parent_end="leave"))
    trial.find()
    (record,) = starts(trial)
    parent = record.parent
    assert parent is not None
    assert (parent.execution_id, parent.node_id, parent.attempt) == (ID, "bill", 1)
    assert (parent.root_id, parent.depth, parent.on_end) == (ID, 1, "leave")
    assert record.state is ExecutionState.PENDING


def test_labels_priority_trace_and_pins_are_handed_down():
    trial = Trial(bill(), start=False)
    record = trial.execution.record
    record.labels = {"team": "red"}
    record.priority = 7
    record.trace = "00-1"
    record.started_by = "key_1"
    record.pins = {"billing@stable": ("billing", 4)}
    trial.execution.commands.record = record
    trial.begin()
    (lookup,) = trial.execution.lookups.values()
    assert lookup.pinned == ("billing", 4)
    trial.find()
    (child,) = starts(trial)
    assert (child.labels, child.priority, child.trace) == ({"team": "red"}, 7, "00-1")
    assert (child.started_by, child.pins) == ("key_1", record.pins)


def test_the_same_decision_names_the_same_child():
    first = Trial(bill())
    first.find()
    second = Trial(bill())
    second.lose_the_owner()
    second.find()
    assert first.child("bill") == second.child("bill")


def test_the_id_of_a_child_follows_from_each_fact_that_it_is_made_of():
    parent = ExecutionRecord("p", "w", 1, ExecutionState.RUNNING, b"{}", 1_700_000_000.25)
    other = ExecutionRecord("q", "w", 1, ExecutionState.RUNNING, b"{}", 1_700_000_000.25)
    found = Found("billing", 7, b"{}")
    ids = [
        child_id(parent, "bill", 1, found),
        child_id(other, "bill", 1, found),
        child_id(parent, "ship", 1, found),
        child_id(parent, "bill", 2, found),
        child_id(parent, "bill", 1, Found("invoice", 7, b"{}")),
        child_id(parent, "bill", 1, Found("billing", 8, b"{}")),
        child_id(parent, "bill", 1, Found("billing", 7, b'{"a":1}')),
    ]
    assert len(set(ids)) == len(ids)
    for execution_id in ids:
        assert execution_id.startswith("018bcfe5-68fa-7")
        assert execution_id[19] in "89ab"
        assert len(execution_id) == 36


def test_an_owner_that_takes_over_asks_again_and_then_waits_for_the_same_child():
    trial = Trial(bill())
    assert trial.wake_at is not None
    trial.lose_the_owner()
    assert set(trial.execution.lookups) == {"bill"}
    trial.find()
    child = trial.child("bill")
    trial.lose_the_owner()
    assert trial.execution.lookups == {}
    trial.child_ended("bill", child=child)
    assert trial.state == "COMPLETED"


def test_the_start_of_a_child_follows_from_the_node_s_record():
    trial = Trial(bill())
    trial.find()
    (record,) = starts(trial)
    trial.lose_the_owner()
    again = start_of(trial.execution.record, trial.run("bill"))
    assert again == StartChild(record)
    assert start_of(trial.execution.record, trial.run("bill")) is not None
    other = Trial(node("a"))
    assert start_of(other.execution.record, other.run("a")) is None


def test_what_cannot_be_found_fails_the_node_before_a_child_exists():
    trial = Trial(bill())
    error = TaskError("config", "there is no workflow billing@stable")
    trial.find(bill=Found(error=error))
    assert trial.states["bill"] == "FAILED"
    assert trial.execution.record.error == error
    assert trial.sends == []


def test_an_input_or_a_name_that_is_none_fails_the_node():
    for config in ({"workflow": "{{ input.a }}"}, {"workflow": "b", "input": "{{ input.a }}"}):
        trial = Trial(bill(config=config), input_value={"a": 7})
        assert trial.states["bill"] == "FAILED"
        assert trial.run("bill").failures[-1].error.category == "config"


def test_an_input_that_is_too_large_fails_the_node():
    trial = Trial(bill())
    trial.find(bill=Found("billing", 7, b"x" * 300_000))
    assert trial.states["bill"] == "FAILED"
    assert "262,144 bytes" in trial.run("bill").failures[-1].error.message


def test_a_child_too_deep_is_not_started():
    trial = Trial(bill(max_depth=1), start=False)
    trial.find()
    shallow = Trial(bill(max_depth=1))
    shallow.find()
    (record,) = starts(shallow)
    trial.execution.record.parent = record.parent
    trial.execution.commands.record = trial.execution.record
    trial.begin()
    assert trial.states["bill"] == "FAILED"
    assert "too_deep" in trial.run("bill").failures[-1].error.message


def test_an_end_of_another_child_or_attempt_changes_nothing():
    trial = Trial(bill(retry={"max_attempts": 2, "delay_seconds": 0, "jitter": 0}))
    trial.find()
    first = trial.child("bill")
    assert trial.child_ended("bill", child="another").history == []
    assert trial.child_ended("bill", attempt=2).history == []
    trial.child_ended("bill", "FAILED")
    assert trial.states["bill"] == "RETRYING"
    assert trial.child_ended("bill", child=first).history == []
    trial.find()
    assert trial.states["bill"] == "WAITING"
    assert trial.child("bill") != first
    assert trial.child_ended("bill", child=first, attempt=1).history == []
    trial.child_ended("bill", output=1)
    assert trial.state == "COMPLETED"
    assert trial.child_ended("bill", output=2).history == []


def test_a_child_that_failed_fails_its_node_with_its_error():
    trial = Trial(bill())
    trial.find()
    trial.child_ended("bill", "FAILED")
    error = trial.execution.record.error
    assert error is not None
    assert error.category == "child"
    assert error.message == f"its child {trial.child('bill')} failed: handler: no money"
    assert trial.state == "FAILED"


def test_a_new_owner_goes_on_with_the_next_child_after_the_delay():
    trial = Trial(bill(retry={"max_attempts": 2, "delay_seconds": 30, "jitter": 0}))
    trial.find()
    trial.child_ended("bill", "FAILED", at=10.0)
    trial.lose_the_owner()
    assert trial.execution.lookups == {}
    trial.timer(at=40.0)
    trial.find()
    assert trial.run("bill").attempt == 2
    assert trial.states["bill"] == "WAITING"


def test_a_child_that_somebody_cancelled_is_not_tried_again():
    trial = Trial(bill(retry={"max_attempts": 5}))
    trial.find()
    trial.child_ended("bill", "CANCELLED")
    assert trial.states["bill"] == "FAILED"
    assert trial.execution.record.error_node_id == "bill"


def test_a_cancel_cancels_the_children_that_are_waited_for():
    trial = Trial(bill(), node("other"))
    trial.find()
    trial.cancel()
    assert trial.state == "CANCELLED"
    assert cancels(trial) == [(trial.child("bill"), "parent_ended")]
    assert trial.child_ended("bill").history == []


def test_a_failure_elsewhere_cancels_the_child_and_leave_leaves_it():
    trial = Trial(bill(), once("other"))
    trial.find()
    trial.fail("other")
    assert cancels(trial) == [(trial.child("bill"), "parent_ended")]

    left = Trial(bill(on_parent_end="leave"), once("other"))
    left.find()
    left.fail("other")
    assert left.states["bill"] == "CANCELLED"
    assert cancels(left) == []


def test_a_child_out_of_time_is_cancelled_and_the_attempt_has_failed():
    retry = {"max_attempts": 2, "delay_seconds": 0, "jitter": 0}
    trial = Trial(bill(timeout_seconds=60, on_parent_end="leave", retry=retry))
    trial.find()
    first = trial.child("bill")
    trial.lose_the_owner()
    trial.timer(at=59.0)
    assert trial.states["bill"] == "WAITING"
    trial.timer(at=60.0)
    assert trial.states["bill"] == "RETRYING"
    assert cancels(trial) == [(first, "parent_timeout")]
    trial.find()
    trial.timer(at=120.0)
    assert trial.states["bill"] == "FAILED"
    error = trial.execution.record.error
    assert error is not None
    assert error.category == "timeout"


def test_a_child_that_nobody_waits_for_is_started_and_the_node_completes():
    trial = Trial(bill(wait=False))
    trial.find()
    assert trial.state == "COMPLETED"
    (record,) = starts(trial)
    assert trial.output("bill") == {"execution_id": record.execution_id}
    parent = record.parent
    assert parent is not None
    assert not parent.is_awaited
    assert start_of(trial.execution.record, trial.run("bill")) == StartChild(record)


def test_pause_and_resume_are_handed_down_and_an_end_meanwhile_is_recorded():
    trial = Trial(bill(), node("tell", "bill"))
    trial.find()
    child = trial.child("bill")
    trial.pause()
    trial.child_ended("bill")
    assert trial.states == {"bill": "COMPLETED", "tell": "PENDING"}
    trial.resume()
    assert trial.states["tell"] == "QUEUED"
    assert ControlChild(child, "pause") in trial.sends
    assert ControlChild(child, "resume") not in trial.sends

    waits = Trial(bill())
    waits.find()
    waits.pause()
    waits.resume()
    assert waits.sends[1:] == [
        ControlChild(waits.child("bill"), "pause"),
        ControlChild(waits.child("bill"), "resume"),
    ]


def test_a_pause_before_the_answer_holds_the_child_back():
    trial = Trial(bill())
    trial.pause()
    trial.find()
    assert trial.sends == []
    trial.resume()
    assert trial.states["bill"] == "WAITING"


def test_an_answer_after_the_end_of_the_node_starts_nothing():
    trial = Trial(bill(), once("other"))
    lookups = dict(trial.execution.lookups)
    trial.fail("other")
    assert trial.state == "FAILED"
    trial.execution.lookups.update(lookups)
    trial.find()
    assert trial.sends == []


def test_items_of_a_map_have_children_of_their_own():
    each = {
        "id": "each",
        "for_each": [1, 2],
        "handler": "workflow",
        "config": {"workflow": "billing", "input": {"sum": "{{ item }}"}},
    }
    trial = Trial(each)
    trial.find()
    inputs = [record.input for record in starts(trial)]
    assert inputs == [b'{"sum":1}', b'{"sum":2}']
    trial.child_ended("each[1]", output="b")
    trial.lose_the_owner()
    trial.child_ended("each[0]", output="a")
    assert trial.output("each") == ["a", "b"]


def test_an_item_that_fails_cancels_the_children_of_the_others():
    each = {
        "id": "each",
        "for_each": [1, 2],
        "handler": "workflow",
        "config": {"workflow": "billing", "input": {"sum": "{{ item }}"}},
    }
    trial = Trial(each)
    trial.find()
    trial.child_ended("each[0]", "FAILED")
    assert trial.state == "FAILED"
    assert cancels(trial) == [(trial.child("each[1]"), "parent_ended")]


def test_an_execution_that_broke_cancels_its_children_without_a_plan():
    for on_end, cancelled in (("cancel", 1), ("leave", 0)):
        trial = Trial(bill(on_parent_end=on_end))
        trial.find()
        execution = trial.execution
        commands = fail_from_records(
            execution.record, execution.runs, execution.last_seq, "it broke", 9.0
        )
        assert len(commands.sends) == cancelled
