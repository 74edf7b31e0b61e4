"""What is kept of failed attempts and their logs doesn't grow with their number."""

from __future__ import annotations

from msgspec import structs

from penstock.engine import events as ev
from penstock.engine.commands import AttemptFailure, Commands, ExecutionRecord, NodeRun, Transition
from penstock.engine.events import TaskError
from penstock.engine.failures import (
    FIRST_FAILURES_MAX,
    LAST_FAILURES_MAX,
    LOGS_CHARACTERS_MAX,
    MESSAGE_CHARACTERS_MAX,
    SHORT_MESSAGE_CHARACTERS_MAX,
)
from penstock.engine.states import ExecutionState, NodeState
from penstock.stores import codec
from penstock.stores.base import Lease, Stored
from penstock.stores.commit_plan import plan_commit
from tests.engine.trial import ID, Trial, node

ATTEMPTS = 300
PATIENT = {"max_attempts": ATTEMPTS, "delay_seconds": 0, "jitter_seconds": 0}
LEASE = Lease(0, "owner", "token", 0, 0)


class StoredTrial:
    """A trial whose commits are kept as a store keeps them."""

    def __init__(self, retry: dict[str, int]) -> None:
        self.trial = Trial(node("a", retry=retry), start=False)
        self.record = codec.decode_record(codec.encode(self.trial.execution.record))
        self.changes: list[bytes] = []
        self._collect(self.trial.begin())

    def _collect(self, commands: Commands) -> None:
        [(_, change)] = plan_commit(LEASE, 0, [commands]).changes
        self.changes.append(change)

    def fail(self, message: str, logs: str = "", *, retryable: bool = True) -> None:
        error = TaskError("handler", message, "ValueError", {"detail": "d" * 1000}, "t" * 8000)
        attempt = self.trial.run("a").attempt
        event = ev.TaskFailed(ID, "a", 1, attempt, "worker-1", 0.0, error, retryable, None, logs)
        self._collect(self.trial.send(event))

    def stored(self) -> Stored:
        return codec.fold(self.record, [codec.decode_change(change) for change in self.changes])

    def size(self) -> int:
        return sum(map(len, self.changes))


def test_a_node_keeps_its_first_and_its_newest_failures_and_how_many_were_between():
    stored_trial = StoredTrial(PATIENT)
    for attempt in range(1, ATTEMPTS + 1):
        stored_trial.fail(f"{attempt} " + "x" * 3000)
    run = stored_trial.trial.run("a")
    attempts = [failure.attempt for failure in run.failures]
    last = range(ATTEMPTS - LAST_FAILURES_MAX + 1, ATTEMPTS + 1)
    assert attempts == [*range(1, FIRST_FAILURES_MAX + 1), *last]
    assert run.failures_dropped == ATTEMPTS - FIRST_FAILURES_MAX - LAST_FAILURES_MAX
    assert run.state == "FAILED"
    [dead_letter] = stored_trial.trial.dead_letters
    assert (dead_letter.attempts, dead_letter.attempts_dropped) == (
        run.failures,
        run.failures_dropped,
    )


def test_the_first_failures_and_the_last_are_kept_whole_and_those_between_are_cut_short():
    stored_trial = StoredTrial(PATIENT)
    for _ in range(ATTEMPTS):
        stored_trial.fail("x" * 3000)
    failures = stored_trial.trial.run("a").failures
    whole = [
        len(failure.error.message) == 3000 and failure.error.traceback is not None
        for failure in failures
    ]
    assert whole == [True] * FIRST_FAILURES_MAX + [False] * (LAST_FAILURES_MAX - 1) + [True]
    assert {len(failure.error.message) for failure in failures[FIRST_FAILURES_MAX:-1]} == {
        SHORT_MESSAGE_CHARACTERS_MAX + 1
    }
    assert failures[FIRST_FAILURES_MAX].error.detail is None


def test_each_failure_is_written_once_however_many_there_are():
    stored_trial = StoredTrial(PATIENT)
    for _ in range(ATTEMPTS // 2):
        stored_trial.fail("x" * 3000)
    half = stored_trial.size()
    for _ in range(ATTEMPTS // 2 - 1):
        stored_trial.fail("x" * 3000)
    assert stored_trial.size() - half < ATTEMPTS // 2 * (SHORT_MESSAGE_CHARACTERS_MAX + 500), (
        "an attempt writes more than its own failure"
    )


def test_a_store_that_is_read_again_has_the_same_failures():
    stored_trial = StoredTrial(PATIENT)
    for count in (1, FIRST_FAILURES_MAX, LAST_FAILURES_MAX, 50):
        for _ in range(count):
            stored_trial.fail("x" * 3000)
        stored = stored_trial.stored()
        assert stored.runs == stored_trial.trial.execution.runs
        assert (
            codec.fold(stored_trial.record, [codec.decode_change(codec.encode_whole(stored))]).runs
            == stored.runs
        )


def test_records_of_an_older_version_are_read_with_the_failures_that_are_in_them():
    def failure(attempt: int) -> AttemptFailure:
        return AttemptFailure(attempt, 1.0, TaskError("handler", "older"))

    record = ExecutionRecord(ID, "trial", 3, ExecutionState.RUNNING, b"{}", 0.0)
    line = Transition(1, 0.0, "a", "PENDING", "QUEUED", 1)
    older = NodeRun("a", NodeState.RETRYING, 30, failures=[failure(i) for i in range(1, 31)])
    before = codec.encode(
        [1, record, [list(structs.astuple(older)[:10])], {}, [line]]
    )  # the fields of that time
    after = NodeRun("a", NodeState.RETRYING, 31, failures_dropped=11)
    newer = codec.encode(codec.Change(1, None, [after], {}, [line], [], [("a", failure(31))]))

    def attempts(*changes: bytes) -> list[int]:
        stored = codec.fold(record, [codec.decode_change(change) for change in changes])
        return [failure.attempt for failure in stored.runs["a"].failures]

    assert attempts(before) == [*range(1, 31)]
    assert attempts(before, newer) == [*range(1, 6), *range(17, 32)]
    assert set(attempts(before, newer, before)) == set(range(1, 32)), (
        "an older version took over for a while"
    )


def test_the_logs_of_a_node_have_a_limit_and_the_last_attempt_keeps_its_own():
    stored_trial = StoredTrial(PATIENT)
    for _ in range(ATTEMPTS):
        stored_trial.fail("no", logs="l" * 60_000)
    logs = stored_trial.stored().logs
    assert [attempt for _, attempt, _ in logs] == [1, 2, 3, 4, 5, ATTEMPTS]
    assert sum(len(text) for _, _, text in logs) < LOGS_CHARACTERS_MAX + 3 * 60_000
    assert "only the last one's log is kept" in logs[-2][2]


def test_an_error_that_is_made_of_a_documents_text_is_cut():
    config = {"value_a": 1, "operator": "o" * (3 * MESSAGE_CHARACTERS_MAX), "value_b": 1}
    trial = Trial(node("a", handler="decision", config=config))
    [failure] = trial.run("a").failures
    assert len(failure.error.message) <= MESSAGE_CHARACTERS_MAX + 1
    assert trial.execution.record.error == failure.error
