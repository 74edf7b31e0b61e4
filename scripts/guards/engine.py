"""Refusals of the core: what comes too late, or twice, changes nothing."""

from __future__ import annotations

from scripts.guards.guard import Guard

GUARDS = [
    Guard(
        "a node changes state by the table only", "engine/execution.py",
        "if state not in NODE_TRANSITIONS[before]:", "if False:",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "an execution changes state by the table only", "engine/states.py",
        "if after not in EXECUTION_TRANSITIONS[before]:", "if False:",
        "tests/engine/test_states.py",
    ),
    Guard(
        "an execution that has ended changes no more", "engine/execution.py",
        "        if self.record.state in EXECUTION_ENDS:\n            return commands\n", "",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "a report of another attempt has no effect", "engine/execution.py",
        "or event.attempt != run.attempt", "or False",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "a report of another generation has no effect", "engine/execution.py",
        "or event.generation != self.record.generation", "or False",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "a report about a node that isn't out has no effect", "engine/execution.py",
        "or (run.state is not QUEUED and run.state is not RUNNING)", "or False",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "no attempt after the last", "engine/execution.py",
        "not retryable or losses.attempts_used(run) >= self.node_of(run).retry.max_attempts", "not retryable",
        "tests/engine/test_retry.py tests/engine/test_against_model.py",
    ),
    Guard(
        "a task that kills its workers isn't spared twice", "engine/losses.py",
        "if was_last and run.losses == 1:", "if was_last:",
        "tests/engine/test_retry.py tests/engine/test_against_model.py",
    ),
    Guard(
        "a handler that stops its own worker isn't spared for ever", "engine/losses.py",
        "if run.uncounted < UNCOUNTED_MAX:", "if True:",
        "tests/engine/test_retry.py",
    ),
    Guard(
        "a node that ran in a lost generation goes back by the table", "engine/rebuilding.py",
        "                check_node(run.address, run.state, after)\n", "",
        "tests/engine/test_rebuilding.py",
    ),
    Guard(
        "a commit hands out no more tasks than one may", "engine/execution.py",
        " or len(commands.tasks) >= COMMIT_WEIGHT:", ":",
        "tests/engine/test_rebuilding.py",
    ),
    Guard(
        "what was kept is recorded, not run", "engine/execution.py",
        "if self.kept and record.state is not ExecutionState.PENDING:", "if False:",
        "tests/engine/test_kept.py",
    ),
    Guard(
        "an execution that is stopped keeps what it hadn't recorded yet", "engine/ending.py",
        "    if execution.kept:  #", "    if False:  #",
        "tests/engine/test_kept.py",
    ),
    Guard(
        "a secret is not filled in where an override stands", "definition/config.py",
        "tuple(secret for secret in secrets if secret.path[0] not in over)", "secrets",
        "tests/engine/test_overrides.py",
    ),
    Guard(
        "what was prepared from less than is known now is prepared again", "engine/start.py",
        " or any(address in execution.outputs for address in prepared.missing)", "",
        "tests/engine/test_preparing.py",
    ),
    Guard(
        "what may take long is not evaluated in the decision", "engine/start.py",
        "size > condition.inline_bytes or ", "",
        "tests/engine/test_preparing.py",
    ),
    Guard(
        "a timer is set while a preparation is under way", "engine/execution.py",
        "            self.wake(self.now + PREPARE_AGAIN_SECONDS)\n", "            pass\n",
        "tests/engine/test_preparing.py",
    ),
    Guard(
        "the table of nodes refuses what it doesn't have", "engine/states.py",
        "if after not in NODE_TRANSITIONS[before]:", "if False:",
        "tests/engine/test_states.py",
    ),
    Guard(
        "what moves a node asks the table", "engine/execution.py",
        "            check_node(address, before, state)\n", "            pass\n",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "what moves an execution asks the table", "engine/execution.py",
        "        check_execution(self.record.execution_id, before, state)\n", "",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "failing from the records asks the table", "engine/ending.py",
        "    check_execution(record.execution_id, record.state, ExecutionState.FAILED)\n", "",
        "tests/engine/test_failure.py",
    ),
    Guard(
        "a deadline of an earlier attempt has no effect", "engine/deadlines.py",
        " or run.attempt != attempt:", ":",
        "tests/engine/test_guards.py tests/engine/test_time.py",
    ),
    Guard(
        "a return that comes twice hands the task out once", "engine/execution.py",
        " or key in self._returned:", ":",
        "tests/engine/test_returned.py",
    ),
    Guard(
        "a node is made ready once", "engine/execution.py",
        "if number in self._readied or", "if",
        "tests/engine/test_guards.py",
    ),
    Guard(
        "a node that has begun isn't begun by another parent", "engine/execution.py",
        "if number in self._readied or node.address in self.runs:", "if number in self._readied:",
        "tests/engine/test_guards.py tests/engine/test_kept.py tests/engine/test_joins.py",
    ),
    Guard(
        "a node that ended is counted off", "engine/execution.py",
        "        if state in NODE_ENDS:\n", "        if False:\n",
        "tests/engine/test_joins.py",
    ),
    Guard(
        "an execution ends once", "engine/execution.py",
        "if not self.open and record.state not in EXECUTION_ENDS:", "if not self.open:",
        "tests/engine/test_cancel.py tests/engine/test_failure.py",
    ),
    Guard(
        "a new owner counts what has ended", "engine/derived.py",
        "        if run.state in NODE_ENDS:\n            execution.open -= 1\n",
        "        if False:\n            execution.open -= 1\n",
        "tests/engine/test_records.py tests/engine/test_against_model.py",
    ),
    Guard(
        "an added node counts only parents that have ended", "engine/derived.py",
        "if run is not None and run.state in NODE_ENDS:", "if run is not None:",
        "tests/engine/test_growth.py",
    ),
    Guard(
        "failing fast leaves what has ended", "engine/ending.py",
        "if run is not None and run.state not in NODE_ENDS and not _is_cleanup(execution, number):",
        "if run is not None and not _is_cleanup(execution, number):",
        "tests/engine/test_failure.py",
    ),
    Guard(
        "whatever stops an execution leaves what has ended", "engine/ending.py",
        "        elif run.state not in NODE_ENDS:\n            stop_task", "        else:\n            stop_task",
        "tests/engine/test_cancel.py",
    ),
    Guard(
        "failing from the records leaves nodes that have ended", "engine/ending.py",
        "        if run.state in NODE_ENDS:\n            continue\n", "",
        "tests/engine/test_failure.py",
    ),
]  # fmt: skip
