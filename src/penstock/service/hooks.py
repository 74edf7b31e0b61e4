"""Webhooks: hooks are stored, and their requests verified and turned into starts and signals.

In this order: signature, time window, message that was handled before, body, filter, templates,
`input_schema`, stored; then it is answered. What needs the raw bytes comes first, and nothing is
parsed before the signature is known to be good.

What is secret leaves a request before anything else sees it: headers with credentials are left out,
and values of the hook's secrets are replaced by `***`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET

from penstock.definition.hooks import (
    FUNCTION,
    HOOK_ID,
    CompiledHook,
    Filled,
    HookDocument,
    HookRequest,
    read_hook,
)
from penstock.definition.parse import parse
from penstock.definition.problems import Problem
from penstock.definition.signatures import (
    SIGNATURE_HEADERS,
    BadSignature,
    BadVerification,
    SignedRequest,
    Verification,
    Verified,
    check_secret,
    check_signature,
    is_same_secret,
)
from penstock.definition.template import Missing
from penstock.errors import (
    Conflict,
    HandlerError,
    InvalidInput,
    InvalidWorkflow,
    KeyReused,
    NotFound,
    PenstockError,
    StoreError,
)
from penstock.sandbox import Job, JobFailed, Overrun, Sandbox, call
from penstock.service.executions import Executions
from penstock.service.signals import Signals
from penstock.service.submissions import StartRequest, Submissions
from penstock.service.workflows import Workflows
from penstock.stores.base import Stores
from penstock.stores.hooks import Delivery, Handled, HookRow, MessageClaim
from penstock.stores.records import AuditLine
from penstock.views.hooks import HookAnswer, HookTrial, Outcome, StoredRequest, stored_request
from penstock.worker.redaction import redact

log = logging.getLogger("penstock.service")

BODY_BYTES_MAX = 1024 * 1024
DOCUMENT_BYTES_MAX = 64 * 1024
HOOKS_MAX = 1000
SMALL_BODY_BYTES = 32 * 1024
"""A larger body is parsed in a thread."""
FIELDS_MAX = 1000
FILTER_SECONDS = 0.5
"""Processor time for a filter that isn't provably cheap, with the start of its evaluator."""
BUSY_SECONDS = 5
DETAIL_CHARACTERS_MAX = 1000
FORM = "application/x-www-form-urlencoded"
CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
CLOSED = "this request isn't signed as it must be"


class BadRequest(PenstockError):
    """A request to a hook that isn't let in; the text doesn't say why."""


class HookUnusable(PenstockError):
    """A hook whose secrets can't be found now."""


class MessageBusy(Conflict):
    """The same message is being handled right now."""


class RawRequest(NamedTuple):
    """A request to a hook, as it came."""

    headers: Mapping[str, str]
    """By name in small letters; several of one name are joined by commas."""
    query: Mapping[str, str]
    body: bytes


class Accepted(NamedTuple):
    """A request whose signature is good."""

    hook: CompiledHook
    raw: RawRequest
    verified: Verified
    secrets: tuple[str, ...]


class Handling(NamedTuple):
    """What became of a request."""

    status: int
    outcome: Outcome
    answer: HookAnswer
    replayed: bool = False
    """The same message was handled before, and this is its answer."""


class _StoredAnswer(msgspec.Struct, array_like=True):
    status: int
    outcome: Outcome
    answer: HookAnswer


_answers = msgspec.json.Decoder(_StoredAnswer)
_filter_answers = msgspec.msgpack.Decoder(bool | str)


class Hooks:
    """Stores hooks, and handles their requests."""

    def __init__(  # noqa: PLR0913, PLR0917 -- the parts that it uses
        self,
        stores: Stores,
        submissions: Submissions,
        signals: Signals,
        executions: Executions,
        workflows: Workflows,
        sandbox: Sandbox,
        *,
        secret: Callable[[str], str],
        is_local: bool,
    ) -> None:
        """`secret` finds a secret by its name.

        `is_local`: only this machine can reach the service.
        """
        self._stores = stores
        self._submissions = submissions
        self._signals = signals
        self._executions = executions
        self._workflows = workflows
        self._sandbox = sandbox
        self._secret = secret
        self._is_local = is_local

    async def put(self, document: Any, hook_id: str | None = None) -> tuple[HookRow, bool]:
        """Store a hook; answers its row, and whether it is new.

        With a `hook_id`, the document may leave its own out. Raises `InvalidInput` with every
        problem, or `NotFound` for a workflow that isn't there.
        """
        document = _plain(document)
        if hook_id is not None and isinstance(document, dict):
            if document.get("id", hook_id) != hook_id:
                raise InvalidInput("the document has another id; leave it out")
            document = {**document, "id": hook_id}
        hook = read_hook(document)
        await self._check_secrets(hook.document)
        if hook.document.start is not None:
            await self._workflows.find(hook.document.start.workflow)
        rows = await self._stores.cold.hooks.hooks()
        if len(rows) >= HOOKS_MAX and hook.id not in {row.id for row in rows}:
            raise InvalidInput(f"there are {HOOKS_MAX:,} hooks already; delete one")
        now = self._stores.hot.now()
        text = msgspec.json.encode(document)
        created = await self._stores.cold.hooks.put(HookRow(hook.id, text, now, now))
        return await self.row(hook.id), created

    async def row(self, hook_id: str) -> HookRow:
        row = None
        if HOOK_ID.fullmatch(hook_id):
            row = await self._stores.cold.hooks.get(hook_id)
        if row is None:
            raise NotFound(f"there is no hook {hook_id[:80]!r} in this store")
        return row

    async def rows(self) -> list[HookRow]:
        """All hooks, by id."""
        return await self._stores.cold.hooks.hooks()

    async def delete(self, hook_id: str) -> None:
        if not HOOK_ID.fullmatch(hook_id) or not await self._stores.cold.hooks.delete(hook_id):
            raise NotFound(f"there is no hook {hook_id[:80]!r} in this store")

    async def deliveries(
        self, hook_id: str, before: int | None = None, limit: int = 50
    ) -> list[Delivery]:
        """Deliveries of a hook, the newest first."""
        await self.row(hook_id)
        now = self._stores.hot.now()
        return await self._stores.cold.hooks.deliveries(hook_id, now, before, limit)

    async def find(self, hook_id: str) -> CompiledHook:
        """The hook that a request is for. Raises `BadRequest`: who isn't let in learns nothing."""
        try:
            row = await self.row(hook_id)
        except NotFound:
            raise BadRequest(CLOSED) from None
        return _compiled(row.document)

    async def accept(self, hook: CompiledHook, raw: RawRequest, *, is_from_here: bool) -> Accepted:
        """Check signature and time of a request. Raises `BadRequest`, `HookUnusable`.

        `is_from_here`: it was sent on this machine, and by no web page.
        """
        secrets = await self._secrets_of(hook)
        verify = hook.document.verify
        try:
            if isinstance(verify, Verification):
                values = secrets[: len(verify.secrets)]
                signed = SignedRequest(raw.headers, raw.body)
                verified = check_signature(verify, signed, values, now=self._stores.hot.now())
            elif self._is_local and is_from_here:
                verified = Verified()
            else:
                raise BadSignature("it needs no signature, which is only for requests from here")  # noqa: TRY301
        except (BadSignature, BadVerification) as error:
            log.warning("a request to the hook %s was refused: %s", hook.id, error)
            raise BadRequest(CLOSED) from None
        return Accepted(hook, raw, verified, secrets)

    async def challenge(self, hook: CompiledHook, query: Mapping[str, str]) -> str:
        """The answer to Meta's question whether this is the right address. Raises `BadRequest`."""
        name = hook.document.challenge_secret
        token = query.get("hub.verify_token", "")
        answer = query.get("hub.challenge", "")
        if name is None or query.get("hub.mode") != "subscribe" or not token or not answer:
            raise BadRequest(CLOSED)
        *_, secret = await self._secrets_of(hook)
        if not is_same_secret(token, secret):
            log.warning("a challenge to the hook %s was refused: another token", hook.id)
            raise BadRequest(CLOSED)
        return answer[:DETAIL_CHARACTERS_MAX]

    async def handle(self, accepted: Accepted, audit: AuditLine | None = None) -> Handling:
        """Start or signal what the hook says, once for each message.

        When this has answered, it is stored. Raises `InvalidInput` for a request that the hook
        can't use, which its deliveries show, `MessageBusy`, `Overloaded`.
        """
        hook = accepted.hook
        # the hook's own name of the message comes before that of the scheme
        has_own_name = hook.once_key is not None
        claimed = await self._claim(hook, None if has_own_name else accepted.verified.message_id)
        if claimed.handling is not None:
            return await self._with_output(hook, claimed.handling)
        try:
            request = await _visible(accepted)
        except Missing as error:
            unread = HookRequest(
                body=redact(accepted.raw.body.decode("utf-8", "replace"), accepted.secrets),
                headers=_visible_headers(accepted),
                query=redact(dict(accepted.raw.query), accepted.secrets),
            )
            raise await self._failed(hook, unread, claimed, str(error)) from None
        return await self._handle(hook, request, claimed, audit=audit)

    async def redeliver(self, hook_id: str, delivery_id: int) -> Handling:
        """Handle the request of a delivery again, also if it was handled before.

        Raises `NotFound`, `Conflict` if the request isn't stored any more, `InvalidInput`.
        """
        row = await self.row(hook_id)
        hook = _compiled(row.document)
        now = self._stores.hot.now()
        delivery = await self._stores.cold.hooks.delivery(hook_id, delivery_id, now)
        if delivery is None:
            raise NotFound(f"the hook {hook_id!r} has no delivery {delivery_id}")
        if delivery.request is None:
            raise Conflict(f"the request of delivery {delivery_id} isn't stored any more")
        request = _request_of(stored_request(delivery.request))
        return await self._handle(hook, request, _Claimed(), redelivery_of=delivery_id)

    async def try_out(
        self, hook_id: str, body: Any, headers: Mapping[str, str], query: Mapping[str, str]
    ) -> HookTrial:
        """What a hook would do with a request; nothing is done, and no signature is checked."""
        small = {name.lower(): value for name, value in headers.items()}
        request = HookRequest(body=_plain(body, BODY_BYTES_MAX), headers=small, query=query)
        row = await self.row(hook_id)
        hook = _compiled(row.document)
        trial = HookTrial(
            outcome="failed",
            detail="",
            message=None,
            input=None,
            labels={},
            correlation=None,
            payload=None,
        )
        try:
            trial.message = hook.message_name(request)
            if not await self._lets_through(hook, request):
                trial.outcome = "skipped"
                trial.detail = "the filter gives false"
                return trial
            filled = hook.fill(request)
            if hook.document.start is not None:
                plan = await self._workflows.resolve(hook.document.start.workflow)
                await self._submissions.check_input(plan, filled.input)
        except (Missing, InvalidInput, InvalidWorkflow, NotFound) as error:
            trial.detail = str(error)[:DETAIL_CHARACTERS_MAX]
            return trial
        trial.outcome = "started" if hook.document.start is not None else "signalled"
        trial.input = filled.input
        trial.labels = filled.labels
        trial.correlation = filled.correlation
        trial.payload = filled.payload
        return trial

    async def _handle(
        self,
        hook: CompiledHook,
        request: HookRequest,
        claimed: _Claimed,
        *,
        redelivery_of: int | None = None,
        audit: AuditLine | None = None,
    ) -> Handling:
        try:
            if redelivery_of is None and hook.once_key is not None:
                claimed = await self._claim(hook, hook.message_name(request))
                if claimed.handling is not None:
                    return await self._with_output(hook, claimed.handling)
            handling = await self._act(hook, request, claimed, audit)
        except (Missing, InvalidInput, InvalidWorkflow, NotFound) as error:
            raise await self._failed(hook, request, claimed, str(error), redelivery_of) from None
        except BaseException:
            await self._release(hook, claimed)
            raise
        await self._record(hook, request, claimed, handling, redelivery_of=redelivery_of)
        return await self._with_output(hook, handling)

    async def _act(
        self,
        hook: CompiledHook,
        request: HookRequest,
        claimed: _Claimed,
        audit: AuditLine | None,
    ) -> Handling:
        challenge = _slack_challenge(hook, request)
        if challenge is not None:
            return Handling(200, "challenge", HookAnswer(challenge=challenge))
        if not await self._lets_through(hook, request):
            return Handling(200, "skipped", HookAnswer(skipped="filter"))
        filled = hook.fill(request)
        signal = hook.document.signal
        if signal is not None:
            correlation = filled.correlation or ""
            sender = f"hook {hook.id}"
            if hook.document.start is None:
                posted = await self._signals.post(
                    signal.name, correlation, filled.payload, sender=sender
                )
            else:
                posted = await self._signals.offer(signal.name, correlation, filled.payload, sender)
            if posted.delivered or hook.document.start is None:
                ids = [sent.execution_id for sent in posted.delivered]
                answer = HookAnswer(execution_id=ids[0] if ids else UNSET, signalled=len(ids))
                return Handling(202, "signalled", answer)
        execution_id = await self._start(hook, filled, claimed, audit)
        return Handling(202, "started", HookAnswer(execution_id=execution_id))

    async def _start(
        self,
        hook: CompiledHook,
        filled: Filled,
        claimed: _Claimed,
        audit: AuditLine | None,
    ) -> str:
        start = hook.document.start
        assert start is not None  # noqa: S101 -- a hook has one, or only a signal
        key_scope = f"hook:{hook.id}"
        key = None if claimed.message is None else claimed.message.hex()
        start_request = StartRequest(
            workflow=start.workflow,
            input=filled.input,
            labels=filled.labels,
            priority=start.priority,
            idempotency_key=key,
            key_scope=key_scope,
            audit=audit,
        )
        try:
            submitted = await self._submissions.submit(start_request)
        except KeyReused:
            # Started by a process that died before it had answered, and filled in differently now:
            # from other headers, or by a hook that has changed since.
            use = await self._stores.cold.executions.key_use(key_scope, key or "")
            if use is None:
                raise
            return use.execution_id
        return submitted.execution_id

    async def _lets_through(self, hook: CompiledHook, request: HookRequest) -> bool:
        if hook.is_cheap(request):
            return hook.lets_through(request)
        parts = hook.filter_job(request)
        job = Job(FUNCTION, parts, turn=f"hook {hook.id}", seconds=FILTER_SECONDS)
        try:
            answer: bool | str = _filter_answers.decode(await call(self._sandbox, job))
        except Overrun as error:
            raise Missing(f"the filter can't be evaluated: {error}") from None
        except JobFailed:
            log.exception("the filter of the hook %s broke", hook.id)
            raise Missing("the filter can't be evaluated") from None
        if isinstance(answer, str):
            raise Missing(answer)
        return answer

    async def _claim(self, hook: CompiledHook, name: str | None) -> _Claimed:
        """Claim the message of this name. Raises `MessageBusy`."""
        if name is None:
            return _Claimed()
        message = sha256(name.encode("utf-8", "surrogatepass")).digest()
        now = self._stores.hot.now()
        claim: MessageClaim = await self._stores.cold.hooks.claim(hook.id, message, now)
        if claim.is_mine:
            return _Claimed(message, now)
        if claim.answer is None:
            raise MessageBusy("this message is being handled; send it again in a moment")
        stored = _answers.decode(claim.answer)
        handling = Handling(stored.status, stored.outcome, stored.answer, replayed=True)
        return _Claimed(handling=handling)

    async def _release(self, hook: CompiledHook, claimed: _Claimed) -> None:
        if claimed.message is None:
            return
        # if this fails, the claim ends by itself
        with suppress(StoreError):
            await self._stores.cold.hooks.release(hook.id, claimed.message, claimed.at)

    async def _failed(
        self,
        hook: CompiledHook,
        request: HookRequest,
        claimed: _Claimed,
        detail: str,
        redelivery_of: int | None = None,
    ) -> InvalidInput:
        """Write down that a request can't be used; answers the error for its sender."""
        detail = detail[:DETAIL_CHARACTERS_MAX]
        await self._release(hook, claimed)
        failed = Handling(422, "failed", HookAnswer())
        await self._record(
            hook, request, _Claimed(), failed, detail=detail, redelivery_of=redelivery_of
        )
        return InvalidInput(f"the hook {hook.id} can't use this request: {detail}")

    async def _record(  # noqa: PLR0913 -- what a delivery is made of
        self,
        hook: CompiledHook,
        request: HookRequest,
        claimed: _Claimed,
        handling: Handling,
        *,
        detail: str = "",
        redelivery_of: int | None = None,
    ) -> None:
        stored = StoredRequest(
            headers=dict(request.headers),
            query=dict(request.query),
            body=msgspec.json.encode(request.body),
        )
        execution_id = handling.answer.execution_id
        delivery = Delivery(
            hook_id=hook.id,
            at=self._stores.hot.now(),
            status=handling.status,
            outcome=handling.outcome,
            detail=detail,
            execution_id=None if execution_id is UNSET else execution_id,
            redelivery_of=redelivery_of,
            request=msgspec.msgpack.encode(stored),
        )
        handled = None
        if claimed.message is not None:
            kept = _StoredAnswer(handling.status, handling.outcome, handling.answer)
            handled = Handled(claimed.message, msgspec.json.encode(kept))
        try:
            await self._stores.cold.hooks.record(delivery, handled)
        except StoreError as error:
            # What was started or signalled is stored, so the sender must not send it again.
            log.warning("a delivery to the hook %s isn't in its list: %s", hook.id, error)

    async def _with_output(self, hook: CompiledHook, handling: Handling) -> Handling:
        """The answer with the output, if the hook waits for it and it comes in time."""
        seconds = hook.document.answer.wait_seconds
        execution_id = handling.answer.execution_id
        if not seconds or handling.outcome != "started" or execution_id is UNSET:
            return handling
        try:
            if await self._executions.end(execution_id, seconds) is None:
                return handling
            view = await self._executions.bare(execution_id)
        except (StoreError, NotFound):
            return handling  # it is stored and was accepted, though it can't be read now
        answer = HookAnswer(execution_id=execution_id, state=view.state, output=view.output)
        return handling._replace(status=200, answer=answer)

    async def _check_secrets(self, document: HookDocument) -> None:
        """Raises `InvalidInput` for a hook that nobody could verify, or that verifies nothing."""
        verify = document.verify
        if verify == "none" and not self._is_local:
            problem = Problem(
                "no_secret", "verify", "'none' is only for a service that is bound to loopback"
            )
            raise InvalidInput(f"the hook is wrong: {problem}", [problem])
        paths: list[tuple[str, str]] = []
        if isinstance(verify, Verification):
            paths += [("verify.secret", name) for name in verify.secrets]
        if document.challenge_secret is not None:
            paths.append(("challenge_secret", document.challenge_secret))
        for path, name in paths:
            # the name isn't quoted: it may be the secret itself
            message = (
                "the settings of this service have no secret of this name;"
                " set PENSTOCK_SECRET_<NAME> or secrets_file where the API runs"
            )
            try:
                value = await asyncio.to_thread(self._secret, name)
                if isinstance(verify, Verification) and path == "verify.secret":
                    check_secret(verify, value)
            except BadVerification as error:
                message = str(error)
            except HandlerError:
                pass
            else:
                continue
            problem = Problem("no_secret", path, message)
            raise InvalidInput(f"the hook is wrong: {problem}", [problem])

    async def _secrets_of(self, hook: CompiledHook) -> tuple[str, ...]:
        """The values of its secrets: those of `verify`, then that of challenges.

        Raises `HookUnusable`.
        """
        document = hook.document
        verify = document.verify
        names = list(verify.secrets) if isinstance(verify, Verification) else []
        if document.challenge_secret is not None:
            names.append(document.challenge_secret)
        if not names:
            return ()
        try:
            return await asyncio.to_thread(lambda: tuple(self._secret(name) for name in names))
        except HandlerError as error:
            log.error("the hook %s can't be used: %s", hook.id, error)  # noqa: TRY400 -- no bug
            raise HookUnusable("this hook can't be used now") from None


class _Claimed(NamedTuple):
    """A message that was claimed; without one it has no name, or was handled before."""

    message: bytes | None = None
    at: float = 0.0
    handling: Handling | None = None
    """What became of it before."""


@lru_cache(maxsize=256)
def _compiled(document: bytes) -> CompiledHook:
    """A hook that is stored, compiled."""
    return read_hook(msgspec.json.decode(document))


def _plain(value: Any, bytes_max: int = DOCUMENT_BYTES_MAX) -> Any:
    """What somebody has passed, as plain JSON. Raises `InvalidInput`."""
    try:
        text = msgspec.json.encode(value)
        if len(text) > bytes_max:
            raise InvalidInput(f"it has {len(text):,} bytes; the limit is {bytes_max:,}")
        return parse(text)
    except (TypeError, ValueError, RecursionError, InvalidWorkflow) as error:
        raise InvalidInput(f"it isn't JSON: {error}") from None


async def _visible(accepted: Accepted) -> HookRequest:
    """A request without anything secret, its body parsed. Raises `Missing`."""
    raw = accepted.raw
    content_type = raw.headers.get("content-type", "")
    arguments = (raw.body, content_type, accepted.secrets)
    if len(raw.body) <= SMALL_BODY_BYTES:
        body = _parsed(*arguments)
    else:  # in a thread, as it would block the event loop
        body = await asyncio.to_thread(_parsed, *arguments)
    query = redact(dict(raw.query), accepted.secrets)
    return HookRequest(body=body, headers=_visible_headers(accepted), query=query)


def _visible_headers(accepted: Accepted) -> dict[str, str]:
    verify = accepted.hook.document.verify
    hidden = CREDENTIALS | SIGNATURE_HEADERS
    if isinstance(verify, Verification):
        hidden |= verify.secret_headers
    headers = {name: value for name, value in accepted.raw.headers.items() if name not in hidden}
    visible: dict[str, str] = redact(headers, accepted.secrets)
    return visible


def _parsed(body: bytes, content_type: str, secrets: tuple[str, ...]) -> Any:
    """A body as JSON has it. Raises `Missing`."""
    if content_type.partition(";")[0].strip().lower() == FORM:
        return redact(_form(body), secrets)
    if not body.strip():
        return None
    try:
        value = msgspec.json.decode(body)
        # what is nested too deep to be written again can't be stored
        msgspec.json.encode(value)
        return redact(value, secrets)
    except (ValueError, RecursionError) as error:
        raise Missing(f"the body isn't JSON: {error}") from None


def _form(body: bytes) -> Any:
    """The fields of a form. A `payload` of JSON alone, as GitHub and Slack send it, is the body."""
    try:
        text = body.decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise Missing("the body isn't a form") from None
    fields = dict(pairs)
    if fields.keys() == {"payload"}:
        with suppress(ValueError, RecursionError):
            return msgspec.json.decode(fields["payload"])
    return fields


def _request_of(stored: StoredRequest) -> HookRequest:
    body = msgspec.json.decode(stored.body)
    return HookRequest(body=body, headers=stored.headers, query=stored.query)


def _slack_challenge(hook: CompiledHook, request: HookRequest) -> str | None:
    """What Slack wants to hear when an address is entered. It is signed as all its requests are."""
    verify = hook.document.verify
    if not isinstance(verify, Verification) or verify.scheme != "slack":
        return None
    body = request.body
    if not isinstance(body, dict) or body.get("type") != "url_verification":
        return None
    challenge = body.get("challenge")
    return challenge[:DETAIL_CHARACTERS_MAX] if isinstance(challenge, str) else None
