"""Approvals: a node that waits for people, and what their decisions make of it."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.waits import decision_name
from penstock.engine.commands import Commands
from tests.engine.trial import Trial, node


def approval(name: str = "release", **config: Any) -> dict[str, Any]:
    return node(name, handler="approval", config={"title": "Send it?", **config})


def decide(
    trial: Trial,
    number: int,
    decision: str,
    at: float | None = None,
    by: str = "Ada",
    **fields: Any,
) -> Commands:
    name = decision_name("release", 1)
    return trial.signal(number, name, {"decision": decision, **fields}, at, sender=by)


def test_an_approval_completes_the_node_with_the_decision():
    trial = Trial(approval(), node("send", "release", config={"tone": "{{ release.form.tone }}"}))
    assert trial.states["release"] == "WAITING"
    decide(trial, 1, "approved", at=5.0, form={"tone": "warm"}, comment="fine")
    output = trial.output("release")
    decisions = output.pop("decisions")
    assert output == {
        "decision": "approved",
        "approved": True,
        "by": "Ada",
        "comment": "fine",
        "form": {"tone": "warm"},
        "at": "1970-01-01T00:00:05.000Z",
    }
    assert len(decisions) == 1
    assert trial.run("release").reason == "approved by Ada"
    assert trial.config("send") == {"tone": "warm"}


def test_a_rejection_is_an_outcome_unless_the_document_says_otherwise():
    trial = Trial(approval())
    decide(trial, 1, "rejected")
    assert trial.states["release"] == "COMPLETED"
    assert trial.output("release")["approved"] is False

    trial = Trial(approval(on_reject="fail"))
    decide(trial, 1, "rejected", comment="too late")
    error = trial.run("release").failures[-1].error
    assert (error.category, error.message) == ("rejected", "rejected by Ada: too late")


def test_as_many_approvals_as_are_needed_and_one_rejection_end_it():
    trial = Trial(approval(needed=2))
    decide(trial, 1, "approved", by="Ada")
    trial.lose_the_owner()
    assert trial.states["release"] == "WAITING"
    decide(trial, 2, "approved", by="Eve")
    assert [item["by"] for item in trial.output("release")["decisions"]] == ["Ada", "Eve"]

    trial = Trial(approval(needed=2))
    decide(trial, 1, "approved", by="Ada")
    decide(trial, 2, "rejected", by="Eve")
    assert trial.output("release")["decision"] == "rejected"


@pytest.mark.parametrize(
    ("on_expire", "approved"), [("reject", False), ("approve", True), ("fail", None)]
)
def test_an_approval_that_nobody_decides_expires(on_expire: str, approved: bool | None):  # noqa: FBT001
    trial = Trial(approval(expires_seconds=60, on_expire=on_expire))
    trial.timer(60.0)
    assert trial.states["release"] == "WAITING", "a decision in time may still be on its way"
    trial.timer(61.0)
    if approved is None:
        assert trial.run("release").failures[-1].error.category == "expired"
    else:
        assert trial.output("release")["decision"] == "expired"
        assert trial.output("release")["approved"] is approved


def test_of_a_decision_and_the_expiry_the_first_counts():
    trial = Trial(approval(expires_seconds=60))
    decide(trial, 1, "approved", at=60.5)
    assert trial.timer(61.0).history == []
    assert trial.output("release")["decision"] == "approved"

    trial = Trial(approval(expires_seconds=60), node("other"))
    trial.timer(61.0)
    assert decide(trial, 1, "approved").history == []
    assert trial.output("release")["decision"] == "expired"


def test_a_decision_about_another_attempt_or_node_has_no_effect():
    trial = Trial(approval())
    for number, name in enumerate((decision_name("release", 2), decision_name("other", 1)), 1):
        trial.signal(number, name, {"decision": "approved"})
    assert trial.states["release"] == "WAITING"


@pytest.mark.parametrize(
    "config",
    [
        {"title": ""},
        {"needed": 0},
        {"approvers": {"who": 1}},
        {"approvers": {"keys": []}},
        {"approvers": {"scope": "read"}},
        {"form": "text"},
        {"comment": "sometimes"},
    ],
)
def test_a_config_that_means_nothing_fails_the_node(config: dict[str, Any]):
    trial = Trial(approval(**config))
    assert trial.states["release"] == "FAILED"
    assert trial.run("release").failures[-1].error.category == "config"
