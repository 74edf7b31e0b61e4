"""One tree of exceptions: everything Penstock raises on purpose is a `PenstockError`.

An error's text says what is wrong, where, and what to do about it; the command line prints it as it
is. Inside handlers two names matter: `Terminal` (never retried) and `Retryable` (retried, with a
chosen delay). Any other exception that a handler raises is retried by the node's policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.definition.problems import Problem


class PenstockError(Exception):
    """The root of the tree."""


class SettingsError(PenstockError):
    """A setting, flag or environment variable has a value that can't be used."""


class InvalidWorkflow(PenstockError):
    """The document was refused; `problems` has every reason at once.

    `file` is the name of the file that it was read from, if that is known.
    """

    def __init__(self, problems: Sequence[Problem], file: str | None = None) -> None:
        self.problems = list(problems)
        self.file = file
        if file is None:
            lines = [str(problem) for problem in self.problems]
        else:
            lines = [problem.in_file(file) for problem in self.problems]
        super().__init__("\n".join(lines))


class InvalidInput(PenstockError):
    """The execution's input isn't JSON, or doesn't fit the workflow's `input_schema`.

    `problems` says where.
    """

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        self.problems = list(problems)
        super().__init__(message)


class NotFound(PenstockError):
    """There is no execution, workflow or version of that name in this store."""


class Conflict(PenstockError):
    """What the execution's state, or somebody else's change, doesn't allow."""


class KeyReused(Conflict):
    """An idempotency key came back with another request."""


class InvalidTransition(PenstockError):
    """A state change that the transition table doesn't have: a bug in the core, not a document."""


class StoreError(PenstockError):
    """A store refused or failed a call."""


class StoreLocked(StoreError):
    """Another process has this store open; the message names it."""


class NotOpen(StoreError):
    """The engine or store hasn't been opened yet, or has been closed."""


class StoreUnavailable(StoreError):
    """The store can't be reached or can't write now; the call may be repeated."""


class StoreFileLost(StoreUnavailable):
    """A file of the store was deleted, moved or replaced while it was in use."""


class SchemaMismatch(StoreError):
    """The store, or a message in it, was written by another version of Penstock."""


class Fenced(StoreError):
    """The partition's lease or commit number has moved on: what was decided in memory is void."""


class HandlerError(PenstockError):
    """What a handler may raise to say how its failure is to be treated.

    `category` groups failures for operators (`http`, `llm`, `config`, ...); `detail` is any JSON
    that helps to understand this one, shown with the error. Neither may hold a secret.
    """

    def __init__(self, message: str = "", *, category: str = "handler", detail: Any = None) -> None:
        super().__init__(message)
        self.category = category
        self.detail = detail


class Terminal(HandlerError):
    """Fail the node now: another attempt can't help."""


class Retryable(HandlerError):
    """Fail this attempt; the next one starts after `after` seconds.

    Without `after`, the node's retry policy says when.
    """

    def __init__(
        self,
        message: str = "",
        *,
        after: float | None = None,
        category: str = "handler",
        detail: Any = None,
    ) -> None:
        super().__init__(message, category=category, detail=detail)
        self.after = after


class LoopRunning(PenstockError, RuntimeError):
    """A blocking call was made where an event loop runs; the message names the one to await."""


class ExecutionFailed(PenstockError):
    """The execution failed or was cancelled, so it has no output: raised by `Result.unwrap`.

    `state`, `node_id`, `category`, `message` and `detail` are those of the execution's error; for
    one that was cancelled the category is `cancelled`. Its cause is the error of the handler, with
    the traceback that was recorded.
    """

    def __init__(  # noqa: PLR0913 -- what is known of the failure
        self,
        text: str = "",
        *,
        execution_id: str = "",
        state: str = "FAILED",
        node_id: str | None = None,
        category: str = "",
        message: str = "",
        detail: Any = None,
    ) -> None:
        super().__init__(text)
        self.execution_id = execution_id
        self.state = state
        self.node_id = node_id
        self.category = category
        self.message = message
        self.detail = detail


class RecordedError(Exception):
    """An error that was raised where a handler ran; its text is the traceback from there."""

    def __str__(self) -> str:
        return f'\n"""\n{str(self.args[0]).rstrip()}\n"""'


class Unreachable(PenstockError):
    """No server answers there, or its stores are away.

    Whether a call that changes something was carried out is unknown.
    """


class Unauthorized(PenstockError):
    """The server wants an API key, or one with another scope."""


class RateLimited(PenstockError):
    """Too many calls; `retry_after` says after how many seconds the server takes the next one."""

    def __init__(self, message: str = "", *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Overloaded(RateLimited):
    """Too much waits already: nothing new is accepted until some of it is done."""


class RequestFailed(PenstockError):
    """The server refused or failed a call in a way that has no exception of its own.

    `status` and `code` tell which.
    """

    def __init__(self, message: str = "", *, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class PartlyStarted(PenstockError):
    """Some of many executions were refused.

    `errors` has their errors by index in the list, `started` the handles of the rest.
    """

    def __init__(
        self, message: str, errors: Mapping[int, PenstockError], started: Mapping[int, Any]
    ) -> None:
        super().__init__(message)
        self.errors = dict(errors)
        self.started = dict(started)
