"""Attempts: a task, the handler's call, and the event that comes of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import structs

from penstock.config import Settings
from penstock.definition.model import SECRETLESS_HANDLERS
from penstock.engine.commands import Stop, Task
from penstock.engine.events import Blob, TaskError, TaskFailed, TaskSucceeded, Value
from penstock.engine.reasons import ErrorCategory
from penstock.errors import Retryable, StoreError, StoreUnavailable, Terminal
from penstock.sandbox import Job, Overrun, Sandbox, call
from penstock.stores import codec
from penstock.stores.base import BlobStore
from penstock.stores.task_keys import Key
from penstock.telemetry.scope import current_scope
from penstock.telemetry.traces import attempt_span, set_failed, trace_id
from penstock.worker.context import Context
from penstock.worker.loading import origin_of
from penstock.worker.logs import AttemptLog, current_log
from penstock.worker.outcome import describe, encode_output, is_retryable, retry_after
from penstock.worker.processes import ProcessRunner
from penstock.worker.protocol import Request
from penstock.worker.redaction import redact
from penstock.worker.registry import Handler
from penstock.worker.room import Room
from penstock.worker.secrets import SecretInUse, Secrets
from penstock.worker.threads import ThreadRunner
from penstock.worker.timing import WorkerTiming

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

log = logging.getLogger("penstock.worker")

INLINE_BYTES = 64 * 1024
"""The size up to which secrets are taken out of an output on the loop; beyond, in the sandbox."""
REDACT = "penstock.worker.attempt:run_redaction"
REDACT_SECONDS = 60.0
"""Processor time for taking secrets out of an output in the sandbox: it is work for each byte."""
SHORT_SECONDS = 0.2
"""An attempt that may only take this long gets its timer at once.

For others the watcher is early enough.
"""

ROOM_BYTES = 96 * 1024 * 1024
"""Bytes of large configs and inputs that a worker holds at once, as JSON.

As Python objects they take a multiple.
"""
INPUTS_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of the outputs that one task is given."""

LATE_SECONDS = 1.0
"""A timer that fires so much too late was held up by a blocked loop."""


class Runners(Protocol):
    settings: Settings
    timing: WorkerTiming
    worker_id: str
    blobs: BlobStore
    secrets: Secrets
    threads: ThreadRunner
    processes: ProcessRunner
    sandbox: Sandbox
    room: Room

    note: Callable[[Key], None]
    """Called just before the task's handler is called."""


class Attempt:
    """An attempt of a task.

    `stopped` says why nobody waits for it any more: `timeout` or `cancelled`.

    Its time is measured on the loop's clock; the times that people see are the host's, which may
    jump.
    """

    __slots__ = (
        "_clock",
        "_loop",
        "_on_stop",
        "_timer",
        "abandoned",
        "began",
        "context",
        "deadline",
        "in_use",
        "key",
        "log",
        "reported",
        "room_bytes",
        "secrets",
        "slot",
        "started_at",
        "stopped",
        "task",
    )

    def __init__(  # noqa: PLR0913, PLR0917 -- what it is made of
        self,
        task: Task,
        key: Key,
        slot: asyncio.Task[Any] | None,
        loop: asyncio.AbstractEventLoop,
        log_bytes: int,
        clock: Callable[[], float],
        on_stop: Callable[[Attempt], None],
    ) -> None:
        self.task = task
        self.key = key
        self.slot = slot
        self._loop = loop
        self._clock = clock
        self._on_stop = on_stop
        self.abandoned = False
        self.log = AttemptLog(log_bytes)
        self.context: Context | None = None
        self.stopped: str | None = None
        self.reported = False
        self.room_bytes = 0
        """Bytes that it takes of the worker's room for large values."""
        self.secrets: Sequence[str] = ()
        self.in_use: Sequence[SecretInUse] = ()
        self._timer: asyncio.TimerHandle | None = None
        self.begin()

    def begin(self) -> None:
        """Start the handler's time (again, for one that had to wait for a process)."""
        self.started_at = self._clock()
        self.deadline = self.started_at + self.task.timeout_seconds
        self.began = self._loop.time()
        if self.task.timeout_seconds < SHORT_SECONDS or self.reported:
            self.limit()

    def limit(self) -> None:
        """Stop the attempt when its time is up.

        Only what runs long, or may only run shortly, gets a timer.
        """
        if self._timer is not None:
            self._timer.cancel()
        due = max(self._loop.time(), self.began + self.task.timeout_seconds)
        self._timer = self._loop.call_at(due, self._time_is_up, due)

    def _time_is_up(self, due: float) -> None:
        late_seconds = self._loop.time() - due
        if late_seconds > LATE_SECONDS:
            # another handler has blocked the loop: this one couldn't go on meanwhile
            self._timer = self._loop.call_later(late_seconds, self.stop, "timeout")
        else:
            self.stop("timeout")

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def identity(self) -> Stop:
        task = self.task
        return Stop(task.execution_id, task.node_id, task.generation, task.attempt)

    def stop(self, reason: str) -> None:
        """Stop the handler.

        Async ones are cancelled, threads see `ctx.cancelled`, processes are killed.
        """
        if self.stopped is None:
            self.stopped = reason
            if self.context is not None:
                self.context.cancel()
            if self.slot is not None:
                self.slot.cancel()
            self._on_stop(self)

    @property
    def marks(self) -> Mapping[str, str | int]:
        task = self.task
        marks: dict[str, str | int] = {
            "execution_id": task.execution_id,
            "node_id": task.node_id,
            "attempt": task.attempt,
            "workflow": task.workflow,
        }
        trace = trace_id(task.trace)
        if trace:
            marks["trace_id"] = trace
        return marks

    @property
    def trace(self) -> str:
        return self.task.trace

    def clean(self, value: Any) -> Any:
        return redact(value, self.secrets) if self.secrets else value

    def logs(self) -> str:
        """What its handler has logged so far, without secrets."""
        text = self.log.text()
        return str(redact(text, self.secrets)) if self.secrets and text else text

    def wait(self) -> None:
        """Stop the attempt's clock while it waits for a thread or a process."""
        self.end()
        self.began = float("inf")


async def run_attempt(
    attempt: Attempt, handler: Handler, runners: Runners
) -> TaskSucceeded | TaskFailed | None:
    """Run an attempt; returns the event to report, None if nobody waits for it.

    Lets a cancellation through that isn't this attempt's own.
    """
    current_log.set(attempt.log)
    current_scope.set(attempt)
    try:
        output = await _call(attempt, handler, runners)
        if attempt.stopped is None:
            if attempt.room_bytes:
                async with runners.room.turn_for(attempt.room_bytes):
                    data = await _encode(attempt, output, runners)
            else:  # nearly always, and no turn is cheaper than an empty one
                data = await _encode(attempt, output, runners)
            value: Value = data
            if len(data) > runners.settings.inline_max_bytes:
                async with runners.room.turn_for(len(data)):
                    value = await _put(data, runners)
            task = attempt.task
            return TaskSucceeded(
                task.execution_id,
                task.node_id,
                task.generation,
                task.attempt,
                runners.worker_id,
                attempt.started_at,
                value,
                attempt.logs(),
            )
    except asyncio.CancelledError as error:
        if attempt.stopped is None:
            if attempt.slot is not None and attempt.slot.cancelling():
                raise  # the worker stops
            # the handler cancelled itself, or something that it waited for was cancelled
            return _failed(attempt, error, runners.worker_id)
    # SystemExit and its like are the handler's failure, not ours
    except BaseException as error:  # noqa: BLE001
        if attempt.stopped is None:
            return _failed(attempt, error, runners.worker_id)
    finally:
        current_log.set(None)
        current_scope.set(None)
        if attempt.room_bytes:
            runners.room.leave(attempt.room_bytes)
    return stopped_event(attempt, runners.worker_id)


async def run_traced(
    attempt: Attempt, handler: Handler, runners: Runners, tracer: Tracer
) -> TaskSucceeded | TaskFailed | None:
    """Run an attempt inside a span."""
    with attempt_span(tracer, attempt.task.handler, attempt) as span:
        event = await run_attempt(attempt, handler, runners)
        if isinstance(event, TaskFailed):
            error = event.error
            set_failed(span, error.category, error.message, kind=error.type, stack=error.traceback)
        return event


async def _call(attempt: Attempt, handler: Handler, runners: Runners) -> Any:
    task = attempt.task
    if not isinstance(task.config, bytes) or _has_blob(task.inputs):
        task = await _fetched(attempt, handler, runners)
    if attempt.room_bytes:
        async with runners.room.turn_for(attempt.room_bytes):
            config = msgspec.json.decode(task.config)  # type: ignore[arg-type]  # fetched
    else:
        config = msgspec.json.decode(task.config)  # type: ignore[arg-type]

    if task.secrets:
        # documents were stored with such configs when they were still allowed
        if task.handler in SECRETLESS_HANDLERS:
            raise Terminal(
                f"{task.handler} can't have secrets in its config: "
                "what it computes is stored and shown",
                category=ErrorCategory.SECRET,
            )
        attempt.in_use = _fill_in_secrets(config, task, runners.secrets)
        attempt.secrets = [secret.value for secret in attempt.in_use]

    if handler.runs_in == "thread":
        return await _call_thread(attempt, handler, config, task, runners)
    if handler.runs_in == "process":
        return await _call_process(attempt, handler, config, task, runners)
    prepared = handler.prepare(config, _context(attempt, task, runners.settings))
    runners.note(attempt.key)
    return await prepared()


def _context(attempt: Attempt, task: Task, settings: Settings) -> Context:
    attempt.context = Context(
        execution_id=task.execution_id,
        node_id=task.node_id,
        attempt=task.attempt,
        idempotency_key=task.idempotency_key,
        deadline=attempt.deadline,
        workflow=task.workflow,
        inputs=task.inputs,
        item=task.item,
        index=task.index,
        on_heartbeat=attempt.log.heartbeat,
        lenient_config=task.lenient_config or settings.mock_services,
        secrets=attempt.in_use,
    )
    return attempt.context


async def _call_thread(
    attempt: Attempt, handler: Handler, config: Any, task: Task, runners: Runners
) -> Any:
    prepared = handler.prepare(config, _context(attempt, task, runners.settings))

    def call() -> Any:
        # in the thread: a call that still waits for a thread is not running
        runners.note(attempt.key)
        return prepared()

    if not runners.threads.has_room:
        attempt.wait()
    return await runners.threads.run(attempt.begin, call)


async def _call_process(
    attempt: Attempt, handler: Handler, config: Any, task: Task, runners: Runners
) -> Any:
    def begin() -> Request:
        attempt.begin()
        runners.note(attempt.key)
        fields = {
            "execution_id": task.execution_id,
            "node_id": task.node_id,
            "attempt": task.attempt,
            "idempotency_key": task.idempotency_key,
            "deadline": attempt.deadline,
            "workflow": task.workflow,
            "item": task.item,
            "index": task.index,
        }
        return Request(
            handler.name,
            msgspec.json.encode(config),
            fields,
            task.inputs,
            runners.settings.log_max_bytes,
            list(attempt.secrets),
        )

    attempt.wait()
    reply = await runners.processes.run(origin_of(handler), begin, attempt.log.write)
    attempt.log.drop(reply.dropped)
    if reply.error is not None:
        raise RemoteFailure(reply.error, retryable=reply.retryable, after=reply.retry_after)
    return msgspec.Raw(reply.output or b"null")


class RemoteFailure(Exception):
    """The error that a handler raised in its own process, already described."""

    def __init__(self, error: TaskError, *, retryable: bool, after: float | None) -> None:
        super().__init__(error.message)
        self.error = error
        self.retryable = retryable
        self.after = after


def _has_blob(inputs: list[tuple[str, Value]]) -> bool:
    for _, value in inputs:  # noqa: SIM110 -- any() would make a generator for every task
        if not isinstance(value, bytes):
            return True
    return False


async def _fetched(attempt: Attempt, handler: Handler, runners: Runners) -> Task:
    """The attempt's task with the values of its blobs, when there is room for them.

    Outputs that its handler never looks at aren't fetched.
    """
    task = attempt.task
    config = task.config
    inputs = task.inputs if handler.needs_inputs else []
    if inputs:
        first_id, first = inputs[0]
        # all inputs are in one blob
        if first_id == "" and isinstance(first, Blob):
            await _enter(attempt, first.size, runners)
            inputs = codec.decode_inputs(await _get(first, runners))

    values = [config, *(value for _, value in inputs)]
    size = sum(value.size for value in values if isinstance(value, Blob))
    await _enter(attempt, size, runners)
    async with runners.room.turn_for(size):
        if isinstance(config, Blob):
            config = await _get(config, runners)
        inputs = [
            (node_id, await _get(value, runners) if isinstance(value, Blob) else value)
            for node_id, value in inputs
        ]
    return structs.replace(task, config=config, inputs=inputs)


async def _enter(attempt: Attempt, size: int, runners: Runners) -> None:
    """Wait for room for so many more bytes; the attempt's time doesn't run meanwhile."""
    total = attempt.room_bytes + size
    if total > INPUTS_BYTES_MAX:
        raise Terminal(
            f"its config and the outputs of its dependencies have {total:,} bytes; "
            f"the limit is {INPUTS_BYTES_MAX:,}. Depend on fewer large outputs",
            category=ErrorCategory.TOO_LARGE,
        )

    room = runners.room
    if room.has_room(size):
        await room.enter(size)
        attempt.room_bytes = total
        return
    if attempt.room_bytes:
        # two attempts that have some room and wait for more could wait for each other
        room.leave(attempt.room_bytes)
        attempt.room_bytes = 0
    attempt.wait()
    await room.enter(total)
    attempt.room_bytes = total
    attempt.begin()


async def _get(blob: Blob, runners: Runners) -> bytes:
    """Get a blob; a store that is away is no fault of the task's, but its time-out still counts."""
    while True:
        try:
            return await runners.blobs.get(blob)
        except StoreUnavailable as error:
            log.warning("can't fetch an input, trying again: %s", error)
            await asyncio.sleep(runners.timing.retry_seconds)


def _fill_in_secrets(config: Any, task: Task, secrets: Secrets) -> list[SecretInUse]:
    """Write the secrets into the config.

    Returns them, so that they can be taken out of everything that is reported.
    """
    used: dict[str, SecretInUse] = {}
    for text in task.secrets:
        filled = ""
        for index, piece in enumerate(text.pieces):
            if index % 2 == 0:
                filled += piece
                continue
            if piece not in used:
                used[piece] = secrets.use(piece, task.handler, task.workflow)
            filled += used[piece].value
        _set_at(config, text.path, filled)
    return list(used.values())


def _set_at(config: Any, path: tuple[str | int, ...], value: str) -> None:
    for key in path[:-1]:
        config = config[key]
    config[path[-1]] = value


async def _encode(attempt: Attempt, output: Any, runners: Runners) -> bytes:
    """The output as JSON text, without secrets. Raises `Terminal` for what can't be stored."""
    data = bytes(output) if isinstance(output, msgspec.Raw) else encode_output(output)
    limit = runners.settings.output_max_bytes
    if attempt.secrets and len(data) <= min(limit, INLINE_BYTES):
        data = encode_output(redact(msgspec.json.decode(data), attempt.secrets))
    elif attempt.secrets and len(data) <= limit:
        data = await _redacted(attempt, data, runners.sandbox)
    if len(data) > limit:
        raise Terminal(
            f"the output has {len(data):,} bytes; the limit is {limit:,}",
            category=ErrorCategory.TOO_LARGE,
        )
    return data


async def _redacted(attempt: Attempt, data: bytes, sandbox: Sandbox) -> bytes:
    """The output without secrets, made in the sandbox: it would take too long on the loop."""
    parts = [msgspec.msgpack.encode(list(attempt.secrets)), data]
    job = Job(REDACT, parts, turn=attempt.task.workflow, seconds=REDACT_SECONDS)
    try:
        return await call(sandbox, job)
    except Overrun as error:
        message = (
            f"secrets can't be taken out of an output of {len(data):,} bytes: {error}; return less"
        )
        raise Terminal(message, category=ErrorCategory.TOO_LARGE) from None


def run_redaction(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The sandbox job that takes secrets out of an output."""
    secrets = msgspec.msgpack.decode(parts[0], type=list[str])
    yield encode_output(redact(msgspec.json.decode(parts[1]), secrets))


async def _put(data: bytes, runners: Runners) -> Blob:
    """Put a large output as a blob.

    The handler has done its work, so this waits until the store takes it.
    """
    while True:
        try:
            return await runners.blobs.put(data)
        except StoreError as error:
            log.warning("can't store an output, trying again: %s", error)
            await asyncio.sleep(runners.timing.retry_seconds)


def _failed(attempt: Attempt, error: BaseException, worker_id: str) -> TaskFailed:
    task = attempt.task
    if isinstance(error, RemoteFailure):
        described = error.error
        retryable = error.retryable
        after = error.after
    else:
        described = describe(error, attempt.secrets)
        retryable = is_retryable(error)
        after = retry_after(error)
    if attempt.secrets:
        fields = redact(msgspec.to_builtins(described), attempt.secrets)
        described = msgspec.convert(fields, TaskError)
    return TaskFailed(
        task.execution_id,
        task.node_id,
        task.generation,
        task.attempt,
        worker_id,
        attempt.started_at,
        described,
        retryable,
        after,
        attempt.logs(),
    )


def stopped_event(attempt: Attempt, worker_id: str) -> TaskFailed | None:
    if attempt.stopped != "timeout":
        return None
    seconds = attempt.task.timeout_seconds
    error = Retryable(
        f"the handler didn't finish within {seconds:g} s", category=ErrorCategory.TIMEOUT
    )
    return _failed(attempt, error, worker_id)
