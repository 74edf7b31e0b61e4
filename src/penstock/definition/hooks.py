"""Hooks: what a webhook's request starts or signals, and how that is made of the request.

`body`, `headers` and `query` of the request are what references in its templates begin with, in the
same closed grammar as those of a document; its filter is a condition over the same three.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from penstock.definition.cel import size_of
from penstock.definition.condition import Condition, compile_condition
from penstock.definition.problems import Problem
from penstock.definition.signatures import (
    BadVerification,
    Verification,
    check_verification,
)
from penstock.definition.template import (
    Missing,
    Reference,
    Room,
    TemplateError,
    Text,
    parse_text,
    render,
)
from penstock.definition.waits import BadWait, check_correlation, check_signal_name
from penstock.errors import InvalidInput

FUNCTION = "penstock.definition.hooks:run_filter"
NAMES = ("body", "headers", "query")
WAIT_SECONDS_MAX = 25.0
"""Senders give up soon after: most of them within 30 seconds, some within 10."""
RENDERED_BYTES_MAX = 4 * 1024 * 1024
RATE_LIMIT = "600/minute"
ONCE_KEY_CHARACTERS_MAX = 512
HOOK_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_RATE = re.compile(r"off|[1-9][0-9]{0,8}/(second|minute|hour|day)", re.ASCII)
SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)


class HookStart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The execution that a request starts."""

    workflow: str
    input: Any = {}
    labels: dict[str, Any] = {}
    priority: int = 0


class HookSignal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signal that a request sends."""

    name: str
    correlation: str
    payload: Any = "{{ body }}"


class AnswerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    wait_seconds: float = 0.0


class HookDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A hook, as users write it."""

    id: str
    start: HookStart | None = None
    signal: HookSignal | None = None
    verify: Verification | Literal["none"] | None = None
    filter: str | None = None
    idempotency: str | None = None
    """The name that the sender has for the message."""
    answer: AnswerSettings = AnswerSettings()
    challenge_secret: str | None = None
    """The name of the secret with which Meta asks whether this is the right address."""
    rate_limit: str = RATE_LIMIT


class HookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What of a request templates and filters see: nothing secret, and the body parsed."""

    body: Any
    headers: Mapping[str, str]
    query: Mapping[str, str]


class Filled(msgspec.Struct, kw_only=True):
    """What a request starts or signals, with its templates filled in."""

    input: Any = None
    labels: dict[str, Any] = {}
    correlation: str | None = None
    payload: Any = None


class CompiledHook(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that is known to make sense."""

    document: HookDocument
    filter: Condition | None
    once_key: Text | None
    input: Any
    """As in the document, with each text compiled."""
    labels: Any
    correlation: Text | None
    payload: Any

    @property
    def id(self) -> str:
        return self.document.id

    def fill(self, request: HookRequest) -> Filled:
        """Raises `Missing` with a text for the user where a reference finds nothing."""
        scope = _RequestScope(request)
        room = Room(RENDERED_BYTES_MAX)
        filled = Filled()
        if self.document.start is not None:
            filled.input = _filled(self.input, scope, room)
            filled.labels = _filled(self.labels, scope, room)
        if self.correlation is not None:
            correlation = _as_name(render(self.correlation, scope, room), "correlation")
            try:
                check_correlation(correlation)
            except BadWait as error:
                raise Missing(f"signal.correlation: {error}") from None
            filled.correlation = correlation
            filled.payload = _filled(self.payload, scope, room)
        return filled

    def message_name(self, request: HookRequest) -> str | None:
        """The sender's name for the message, as `idempotency` says. Raises `Missing`."""
        if self.once_key is None:
            return None
        scope = _RequestScope(request)
        name = _as_name(render(self.once_key, scope, Room(RENDERED_BYTES_MAX)), "idempotency")
        if len(name) > ONCE_KEY_CHARACTERS_MAX:
            raise Missing(
                f"idempotency has {len(name):,} characters; the limit is {ONCE_KEY_CHARACTERS_MAX}"
            )
        return name

    def is_cheap(self, request: HookRequest) -> bool:
        """Whether the filter takes a few milliseconds at most for this request."""
        if self.filter is None:
            return True
        limit = self.filter.inline_bytes
        return limit > 0 and size_of(self.filter.bind(_RequestScope(request)), limit) <= limit

    def lets_through(self, request: HookRequest) -> bool:
        """What the filter says. Raises `Missing` if it can't be evaluated."""
        return self.filter is None or self.filter.evaluate(_RequestScope(request))

    def filter_job(self, request: HookRequest) -> list[bytes]:
        """The parts of a job of `run_filter`."""
        source = self.document.filter or "true"
        return [source.encode("utf-8", "surrogatepass"), msgspec.json.encode(request)]


_requests = msgspec.json.Decoder(HookRequest)


def run_filter(parts: Sequence[bytes]) -> Iterator[bytes]:
    """In the sandbox: whether a filter lets a request through, or why it can't be evaluated."""
    source, request = parts
    condition = compile_condition(source.decode("utf-8", "surrogatepass"), NAMES)
    answer: bool | str
    try:
        answer = condition.evaluate(_RequestScope(_requests.decode(request)))
    except Missing as error:
        answer = str(error)
    yield msgspec.msgpack.encode(answer)


class _RequestScope:
    """Where references of a hook look."""

    input: Any = None
    execution: Mapping[str, Any] = {}
    ending: Mapping[str, Any] = {}

    def __init__(self, request: HookRequest) -> None:
        self._values = {"body": request.body, "headers": request.headers, "query": request.query}

    def output(self, node_id: str) -> Any:
        return self._values[node_id]

    def aliases(self, node_id: str) -> Mapping[str, str]:  # noqa: ARG002 -- of nodes
        return {}

    def outcome(self, node_id: str) -> Mapping[str, Any]:
        raise Missing(f"{node_id} has no state; a request isn't a node")


def read_hook(document: Any) -> CompiledHook:
    """A hook that a user has written. Raises `InvalidInput` with every problem."""
    try:
        hook = msgspec.convert(document, HookDocument)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$.")
        problem = Problem("invalid_hook", path.removesuffix("`"), message)
        raise InvalidInput(f"the hook can't be read: {problem}", [problem]) from None
    return _Compiler(hook).compile()


class _Compiler:
    def __init__(self, hook: HookDocument) -> None:
        self._hook = hook
        self._problems: list[Problem] = []

    def compile(self) -> CompiledHook:
        hook = self._hook
        self._check_plain_fields()
        self._check_verification()
        start = hook.start
        signal = hook.signal
        compiled = CompiledHook(
            document=hook,
            filter=self._filter(),
            once_key=self._text("idempotency", hook.idempotency),
            input=self._tree("start.input", start.input if start else None),
            labels=self._tree("start.labels", start.labels if start else {}),
            correlation=self._text("signal.correlation", signal.correlation if signal else None),
            payload=self._tree("signal.payload", signal.payload if signal else None),
        )
        if self._problems:
            first = self._problems[0]
            raise InvalidInput(f"the hook is wrong: {first}", self._problems)
        return compiled

    def _problem(self, path: str, message: str, code: str = "invalid_hook") -> None:
        self._problems.append(Problem(code, path, message))

    def _check_plain_fields(self) -> None:
        hook = self._hook
        if not HOOK_ID.fullmatch(hook.id):
            self._problem(
                "id",
                "an id has small letters, digits, '-' and '_', begins with a letter or a digit,"
                " and has 64 characters at most",
            )
        if hook.start is None and hook.signal is None:
            self._problem("", "a hook has `start`, `signal`, or both")
        wait_seconds = hook.answer.wait_seconds
        if not 0 <= wait_seconds <= WAIT_SECONDS_MAX:
            self._problem("answer.wait_seconds", f"it must be from 0 to {WAIT_SECONDS_MAX:g}")
        elif wait_seconds and hook.start is None:
            self._problem("answer.wait_seconds", "only what is started has an output to wait for")
        if hook.signal is not None:
            try:
                check_signal_name(hook.signal.name)
            except BadWait as error:
                self._problem("signal.name", str(error))
        if not _RATE.fullmatch(hook.rate_limit):
            self._problem("rate_limit", "a limit such as '60/minute' (second, hour, day), or 'off'")
        if hook.start is not None and not isinstance(hook.start.input, (dict, str)):
            self._problem(
                "start.input", 'it must be an object, or a reference to one: "{{ body }}"'
            )

    def _check_verification(self) -> None:
        verify = self._hook.verify
        if verify is None:
            self._problem(
                "verify",
                "say how requests are signed, and with which secret:"
                ' {"scheme": "github", "secret": "GITHUB_WEBHOOK"}',
                "no_secret",
            )
            return
        names = [] if self._hook.challenge_secret is None else [self._hook.challenge_secret]
        if isinstance(verify, Verification):
            try:
                check_verification(verify)
            except BadVerification as error:
                self._problem(f"verify.{error.field}", str(error))
            names += verify.secrets
        if not all(SECRET_NAME.fullmatch(name) for name in names if name):
            # not quoted: it may be the secret itself
            self._problem(
                "verify.secret", "this is the name of a secret, not its value: letters, digits, '_'"
            )

    def _filter(self) -> Condition | None:
        source = self._hook.filter
        if source is None:
            return None
        if "{{" in source:
            self._problem("filter", "a filter is an expression as a whole: write it without {{ }}")
            return None
        try:
            condition = compile_condition(source, NAMES)
        except TemplateError as error:
            self._problem("filter", _about_requests(str(error)), error.code)
            return None
        if condition.paths.keys() - {"nodes"} or condition.outcomes:
            self._problem("filter", f"a filter can use {', '.join(NAMES)}, and nothing else")
        return condition

    def _text(self, path: str, text: str | None) -> Text | None:
        if text is None:
            return None
        try:
            pieces = parse_text(text, NAMES)
        except TemplateError as error:
            self._problem(path, _about_requests(str(error)), error.code)
            return None
        for piece in pieces:
            if isinstance(piece, Reference) and piece.kind != "node":
                self._problem(
                    path, f"{piece.text}: a hook has {', '.join(NAMES)}, and nothing else"
                )
        return pieces

    def _tree(self, path: str, value: Any) -> Any:
        if isinstance(value, str):
            return _Template(self._text(path, value) or [])
        if isinstance(value, dict):
            return {key: self._tree(f"{path}.{key}", item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._tree(f"{path}[{i}]", item) for i, item in enumerate(value)]
        return value


class _Template(msgspec.Struct, frozen=True):
    """A text of a tree, compiled."""

    pieces: Text


def _about_requests(message: str) -> str:
    """What a message about a document says of a hook."""
    listed = f"{', '.join(NAMES[:-1])} or {NAMES[-1]}"
    return message.replace("a node's id", listed).replace("which isn't a node", f"not to {listed}")


def _filled(value: Any, scope: _RequestScope, room: Room) -> Any:
    if isinstance(value, _Template):
        return render(value.pieces, scope, room)
    if isinstance(value, dict):
        return {key: _filled(item, scope, room) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, scope, room) for item in value]
    return value


def _as_name(value: Any, field: str) -> str:
    """A name that was filled in: text or a number, and not empty. Raises `Missing`."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    text = str(value) if is_number else value
    if not isinstance(text, str) or not text.strip():
        raise Missing(f"{field} gives no text, and no whole number")
    return text
