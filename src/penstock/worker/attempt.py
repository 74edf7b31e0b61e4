"""One attempt: a task, the handler's call, and the event that comes of it."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import msgspec

from penstock.config import Settings
from penstock.engine.commands import Stop, Task
from penstock.engine.events import Blob, TaskError, TaskFailed, TaskSucceeded, Value
from penstock.errors import Retryable, Terminal
from penstock.stores.base import BlobStore
from penstock.worker.child import Request
from penstock.worker.context import Context
from penstock.worker.loading import origin_of
from penstock.worker.logs import AttemptLog, current_log
from penstock.worker.outcome import describe, encode_output, is_retryable, retry_after
from penstock.worker.processes import ProcessRunner
from penstock.worker.registry import Handler
from penstock.worker.secrets import Secrets, redact
from penstock.worker.threads import ThreadRunner


class Runners(Protocol):
    settings: Settings
    worker_id: str
    blobs: BlobStore
    secrets: Secrets
    threads: ThreadRunner
    processes: ProcessRunner


class Attempt:
    """`stopped` says why nobody waits for it any more: `timeout` or `cancelled`."""

    __slots__ = ("context", "deadline", "log", "reported", "secrets", "slot", "started_at", "stopped", "task")

    def __init__(self, task: Task, slot: asyncio.Task[Any] | None, log_bytes: int, now: float) -> None:
        self.task, self.slot = task, slot
        self.started_at = now
        self.deadline = self.started_at + task.timeout_seconds
        self.log = AttemptLog(log_bytes)
        self.context: Context | None = None
        self.stopped: str | None = None
        self.reported = False
        self.secrets: list[str] = []

    @property
    def identity(self) -> Stop:
        task = self.task
        return Stop(task.execution_id, task.node, task.generation, task.attempt)

    def stop(self, reason: str) -> None:
        """Cooperative: async handlers are cancelled, threads see `ctx.cancelled`, processes are killed."""
        if self.stopped is None:
            self.stopped = reason
            if self.context is not None:
                self.context.cancel()
            if self.slot is not None:
                self.slot.cancel()


async def run_attempt(attempt: Attempt, handler: Handler | None, runners: Runners) -> TaskSucceeded | TaskFailed | None:
    """What to report; None if nobody waits for it. Lets a cancellation through that isn't this attempt's own."""
    current_log.set(attempt.log)
    try:
        output = await _call(attempt, handler, runners)
        if attempt.stopped is None:
            return await _succeeded(attempt, output, runners)
    except asyncio.CancelledError:
        if attempt.stopped is None:
            raise
    except BaseException as error:  # noqa: BLE001 -- SystemExit and its like are the handler's failure, not ours
        if attempt.stopped is None:
            return _failed(attempt, error, runners.worker_id)
    finally:
        current_log.set(None)
    return _stopped(attempt, runners.worker_id)


async def _call(attempt: Attempt, handler: Handler | None, runners: Runners) -> Any:
    task = attempt.task
    if handler is None:
        raise Terminal(f"this worker has no handler {task.handler!r}", category="unknown_handler")
    raw = task.config if isinstance(task.config, bytes) else await runners.blobs.get(task.config)
    inputs = await _inputs(task.inputs, runners.blobs)
    config = msgspec.json.decode(raw)
    for secret in task.secrets:
        _fill(config, secret.path, _spell_out(secret.pieces, runners.secrets, attempt.secrets))
    fields: dict[str, Any] = {
        "execution_id": task.execution_id, "node_id": task.node, "attempt": task.attempt,
        "idempotency_key": task.idempotency_key, "deadline": attempt.deadline, "workflow": task.workflow,
    }  # fmt: skip
    if handler.runs_in == "process":
        limit = runners.settings.log_max_bytes
        request = Request(task.handler, msgspec.json.encode(config), fields, inputs, limit)
        return await _call_process(attempt, handler, request, runners)
    attempt.context = context = Context(**fields, inputs=inputs, on_heartbeat=_note_heartbeat(attempt.log))
    arguments = handler.arguments(config, context)
    if handler.runs_in == "thread":
        return await runners.threads.run(handler.function, *arguments)
    return await handler.function(*arguments)


async def _call_process(attempt: Attempt, handler: Handler, request: Request, runners: Runners) -> Any:
    reply = await runners.processes.run(origin_of(handler), request)
    if reply.logs:
        attempt.log.write(reply.logs)
    if reply.error is not None:
        raise RemoteFailure(reply.error, retryable=reply.retryable, after=reply.retry_after)
    return msgspec.Raw(reply.output or b"null")


class RemoteFailure(Exception):
    """What a handler raised in its own process, already described."""

    def __init__(self, error: TaskError, *, retryable: bool, after: float | None) -> None:
        super().__init__(error.message)
        self.error, self.retryable, self.after = error, retryable, after


def _note_heartbeat(log: AttemptLog) -> Any:
    return lambda detail: log.write(f"heartbeat {msgspec.json.encode(detail).decode()}")


async def _inputs(inputs: list[tuple[str, Value]], blobs: BlobStore) -> dict[str, bytes]:
    return {name: await blobs.get(value) if isinstance(value, Blob) else value for name, value in inputs}


def _spell_out(pieces: tuple[str, ...], secrets: Secrets, used: list[str]) -> str:
    text = ""
    for index, piece in enumerate(pieces):
        if index % 2:
            used.append(secrets.get(piece))
            text += used[-1]
        else:
            text += piece
    return text


def _fill(config: Any, path: tuple[str | int, ...], value: str) -> None:
    for key in path[:-1]:
        config = config[key]
    config[path[-1]] = value


async def _succeeded(attempt: Attempt, output: Any, runners: Runners) -> TaskSucceeded | TaskFailed:
    task, settings = attempt.task, runners.settings
    try:
        data = bytes(output) if isinstance(output, msgspec.Raw) else encode_output(output)
    except Terminal as error:
        return _failed(attempt, error, runners.worker_id)
    if attempt.secrets:
        data = encode_output(redact(msgspec.json.decode(data), attempt.secrets))
    value: Value = data
    if len(data) > settings.output_max_bytes:
        message = f"the output has {len(data):,} bytes; the limit is {settings.output_max_bytes:,}"
        return _failed(attempt, Terminal(message, category="too_large"), runners.worker_id)
    if len(data) > settings.inline_max_bytes:
        value = await runners.blobs.put(data)
    return TaskSucceeded(
        task.execution_id, task.node, task.generation, task.attempt, runners.worker_id, attempt.started_at, value,
        _logs(attempt),
    )  # fmt: skip


def _failed(attempt: Attempt, error: BaseException, worker_id: str) -> TaskFailed:
    task = attempt.task
    if isinstance(error, RemoteFailure):
        described, retryable, after = error.error, error.retryable, error.after
    else:
        described, retryable, after = describe(error), is_retryable(error), retry_after(error)
    if attempt.secrets:
        described = msgspec.convert(redact(msgspec.to_builtins(described), attempt.secrets), TaskError)
    return TaskFailed(
        task.execution_id, task.node, task.generation, task.attempt, worker_id, attempt.started_at, described,
        retryable, after, _logs(attempt),
    )  # fmt: skip


def _stopped(attempt: Attempt, worker_id: str) -> TaskFailed | None:
    if attempt.stopped != "timeout":
        return None
    seconds = attempt.task.timeout_seconds
    return _failed(attempt, Retryable(f"the handler didn't finish within {seconds:g} s", category="timeout"), worker_id)


def _logs(attempt: Attempt) -> str:
    text = attempt.log.text()
    return str(redact(text, attempt.secrets)) if attempt.secrets and text else text
