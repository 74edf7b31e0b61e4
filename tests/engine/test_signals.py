"""Signals: kept until somebody waits for them, taken once, by the node that waited first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.trial import Trial, node


def waits(name: str, *dependencies: str, **fields: Any) -> dict[str, Any]:
    """A node that waits for a signal."""
    config = fields.pop("config", {"name": "paid"})
    return node(name, *dependencies, handler="signal", config=config, **fields)


def test_a_signal_completes_the_node_that_waits_for_it():
    trial = Trial(waits("paid"), node("ship", "paid", config={"sum": "{{ paid.amount }}"}))
    assert trial.states["paid"] == "WAITING"
    assert trial.tasks == []
    assert trial.wake_at is None

    trial.signal(1, "paid", {"amount": 7}, at=5.0, sender="key billing")
    assert trial.states == {"paid": "COMPLETED", "ship": "QUEUED"}
    assert trial.output("paid") == {
        "name": "paid",
        "payload": {"amount": 7},
        "from": "key billing",
        "at": "1970-01-01T00:00:05.000Z",
        "number": 1,
    }
    assert trial.config("ship") == {"sum": 7}
    assert trial.run("paid").reason == "signal 1 from key billing"


def test_a_signal_that_comes_early_is_kept_and_taken_when_somebody_waits_for_it():
    trial = Trial(node("first"), waits("paid", "first"))
    trial.signal(1, "other")
    trial.signal(2, "paid", "early")
    trial.lose_the_owner()
    trial.succeed("first")
    assert trial.states["paid"] == "COMPLETED"
    assert trial.output("paid")["payload"] == "early"
    lines = [(line.before, line.after) for line in trial.last.history if line.node_id == "paid"]
    assert lines == [("PENDING", "WAITING"), ("WAITING", "COMPLETED")]


def test_a_signal_that_is_received_twice_counts_once():
    trial = Trial(waits("first"), waits("second"))
    trial.signal(1, "paid")
    assert trial.signal(1, "paid").signals == []
    assert trial.states == {"first": "COMPLETED", "second": "WAITING"}
    trial.lose_the_owner()
    trial.signal(1, "paid")
    assert trial.states == {"first": "COMPLETED", "second": "WAITING"}


def test_the_node_that_began_to_wait_first_takes_the_signal():
    trial = Trial(node("slow"), waits("late", "slow"), waits("early"))
    trial.succeed("slow", at=1.0)
    trial.lose_the_owner()
    trial.signal(1, "paid")
    assert trial.states == {"slow": "COMPLETED", "late": "WAITING", "early": "COMPLETED"}


def test_a_signal_goes_past_nodes_that_do_not_wait_any_more():
    config = {"name": "paid", "timeout_seconds": 60, "on_timeout": "continue"}
    trial = Trial(waits("over", config=config), waits("patient"))
    trial.timer(at=60.0)
    trial.signal(1, "paid")
    trial.signal(2, "paid")
    assert trial.output("over") == {"timed_out": True}
    assert trial.output("patient")["number"] == 1


def test_a_signal_goes_past_nodes_of_items_that_have_ended():
    each = {
        "id": "each",
        "for_each": [1],
        "on_item_failure": "skip",
        "nodes": [waits("inside"), node("fails", retry={"max_attempts": 1})],
    }
    trial = Trial(each, node("slow"), waits("outside", "slow"))
    trial.fail("each[0].fails", at=1.0)
    assert trial.states["each"] == "COMPLETED"
    trial.succeed("slow", at=2.0)
    trial.signal(1, "paid", at=3.0)
    assert trial.states["outside"] == "COMPLETED"


def test_a_signal_is_taken_once_whoever_waits_later():
    trial = Trial(waits("first"), node("slow"), waits("second", "slow"), waits("third", "second"))
    trial.signal(1, "paid")
    trial.succeed("slow")
    assert trial.states["second"] == "WAITING"
    trial.lose_the_owner()
    trial.signal(2, "paid")
    assert (trial.output("second")["number"], trial.states["third"]) == (2, "WAITING")
    trial.lose_the_owner()
    trial.signal(3, "paid")
    assert trial.output("third")["number"] == 3


def test_a_signal_with_a_correlation_goes_to_who_waited_first():
    trial = Trial(
        node("slow"),
        waits("named", "slow", config={"name": "paid", "correlation": "order-7"}),
        waits("any"),
        waits("other", config={"name": "paid", "correlation": "order-8"}),
    )
    trial.succeed("slow", at=1.0)
    trial.signal(1, "paid", correlation="order-7")
    trial.signal(2, "paid", correlation="order-7")
    trial.signal(3, "paid", correlation="order-7")
    assert trial.output("any")["number"] == 1
    assert trial.output("named")["number"] == 2
    assert trial.states["other"] == "WAITING"
    trial.signal(4, "paid")
    assert trial.output("other")["number"] == 4


def test_the_first_signal_of_several_names_is_taken():
    trial = Trial(waits("end", config={"names": ["paid", "refused"]}))
    assert trial.run("end").reason == "for paid or refused"
    trial.signal(1, "shipped")
    trial.signal(2, "refused")
    assert trial.output("end")["name"] == "refused"


def test_a_correlation_keeps_signals_from_nodes_that_wait_for_another():
    trial = Trial(
        waits("paid", config={"name": "paid", "correlation": "{{ input.id }}"}),
        input_value={"id": "order-7"},
    )
    more = trial.run("paid").more
    assert more is not None
    assert more.key == "order-7"
    trial.signal(1, "paid", correlation="order-8")
    assert trial.states["paid"] == "WAITING"
    trial.signal(2, "paid", correlation="order-7")
    assert trial.output("paid")["number"] == 2


def test_a_signal_without_a_correlation_is_for_every_node_of_its_name():
    trial = Trial(waits("paid", config={"name": "paid", "correlation": "order-7"}))
    trial.signal(1, "paid")
    assert trial.states["paid"] == "COMPLETED"


def test_several_signals_are_given_as_a_list_and_none_of_them_to_another_node():
    trial = Trial(
        waits("votes", config={"name": "vote", "count": 2}), waits("more", config={"name": "vote"})
    )
    trial.signal(1, "vote", "yes")
    trial.lose_the_owner()
    assert trial.states == {"votes": "WAITING", "more": "WAITING"}
    trial.signal(2, "vote", "no")
    assert [vote["payload"] for vote in trial.output("votes")] == ["yes", "no"]
    assert trial.states == {"votes": "COMPLETED", "more": "WAITING"}


def test_a_payload_that_does_not_fit_is_skipped():
    schema = {"type": "object", "required": ["amount"]}
    trial = Trial(waits("paid", config={"name": "paid", "schema": schema}))
    trial.signal(1, "paid", {})
    assert trial.states["paid"] == "WAITING"
    trial.signal(2, "paid", {"amount": 1})
    assert trial.output("paid")["number"] == 2


@pytest.mark.parametrize(
    ("on_timeout", "state"), [("fail", "FAILED"), ("continue", "COMPLETED"), (None, "FAILED")]
)
def test_a_signal_that_never_comes_times_out(on_timeout, state):
    config = {"name": "paid", "timeout_seconds": 60, "on_timeout": on_timeout}
    trial = Trial(waits("paid", config=config))
    assert trial.run("paid").reason == "for paid, until 1970-01-01T00:01:00.000Z"
    trial.lose_the_owner()
    trial.timer(60.0)
    assert trial.states["paid"] == state
    if state == "COMPLETED":
        assert trial.output("paid") == {"timed_out": True}
    else:
        assert trial.run("paid").failures[-1].error.category == "timeout"


def test_the_timer_after_the_signal_has_no_effect():
    trial = Trial(waits("paid", config={"name": "paid", "timeout_seconds": 60}), waits("other"))
    trial.signal(1, "paid", at=59.0)
    assert trial.timer(60.0).history == []
    assert trial.states["paid"] == "COMPLETED"


def test_the_signal_after_the_timer_is_kept():
    config = {"name": "paid", "timeout_seconds": 60, "on_timeout": "continue"}
    trial = Trial(waits("paid", config=config), waits("again", "paid"))
    trial.timer(60.0)
    trial.signal(1, "paid")
    assert trial.output("paid") == {"timed_out": True}
    assert trial.output("again")["number"] == 1


def test_a_signal_while_the_execution_is_paused_is_recorded_and_nothing_starts():
    trial = Trial(waits("paid"), node("next", "paid"))
    trial.pause()
    trial.signal(1, "paid")
    assert trial.states == {"paid": "COMPLETED", "next": "PENDING"}
    trial.resume()
    assert trial.states["next"] == "QUEUED"


def test_a_signal_for_an_execution_that_has_ended_changes_nothing():
    trial = Trial(waits("paid"))
    trial.cancel()
    assert trial.signal(1, "paid").signals == []


@pytest.mark.parametrize("name", ["", " paid", "a" * 129, 5, None])
def test_a_name_that_no_signal_can_have_fails_the_node(name):
    trial = Trial(
        waits("paid", config={"names": "{{ input.names }}"}), input_value={"names": [name]}
    )
    assert trial.states["paid"] == "FAILED"
    assert trial.run("paid").failures[-1].error.category == "config"


def test_a_signal_that_was_taken_is_not_given_to_a_node_that_begins_to_wait_later():
    trial = Trial(waits("paid"), waits("again", "paid"))
    trial.signal(1, "paid")
    assert trial.states == {"paid": "COMPLETED", "again": "WAITING"}
    trial.lose_the_owner()
    assert trial.states["again"] == "WAITING"


def test_a_signal_finds_the_items_that_still_wait():
    wait = node("paid", handler="signal", config={"name": "paid", "correlation": "{{ item }}"})
    trial = Trial({"id": "each", "for_each": ["a", "b"], "nodes": [wait]})
    trial.signal(1, "paid", correlation="a")
    assert trial.states["each[0]"] == "COMPLETED"
    trial.signal(2, "paid", correlation="b")
    assert trial.states["each"] == "COMPLETED"


def test_a_correlation_also_keeps_an_early_signal_from_a_node_that_waits_for_another():
    config = {"name": "paid", "correlation": "a"}
    trial = Trial(node("first"), node("paid", "first", handler="signal", config=config))
    trial.signal(1, "paid", correlation="b")
    trial.succeed("first")
    assert trial.states["paid"] == "WAITING"
    trial.signal(2, "paid", {"is": "mine"}, correlation="a")
    assert trial.output("paid")["number"] == 2
