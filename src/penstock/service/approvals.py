"""Approvals: the inbox of open ones, and decisions.

A decision is a signal that only this module sends: stored under a number before it is answered,
delivered as signals are. The store judges it together with those before it, in one transaction: of
two that exclude each other, the first counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.definition.addresses import node_at
from penstock.definition.plan import Plan
from penstock.definition.problems import Problem
from penstock.definition.schema import lines_of, schema_problems
from penstock.definition.waits import ApprovalConfig, approval_config, decision_name
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.events import SignalReceived
from penstock.engine.states import EXECUTION_ENDS, NodeState
from penstock.errors import Conflict, InvalidInput, NotFound, Unauthorized
from penstock.service import approval_links
from penstock.service.approval_links import Link
from penstock.service.executions import Executions, no_node
from penstock.service.keys import SCOPES, includes
from penstock.service.signals import Signals, encoded_payload
from penstock.stores.base import Stored, Stores
from penstock.stores.records import ApiKey, Scope
from penstock.stores.signals import NewSignal
from penstock.stores.waits import WaitRow, WaitSearch
from penstock.views.approvals import ApprovalItem, Decided, Decision, approval_item
from penstock.views.times import time_text

COMMENT_CHARACTERS_MAX = 4000


class Decider(NamedTuple):
    """Who decides."""

    name: str = ""
    """As the decision shows it; one name counts once."""
    key_id: str = ""
    scopes: Sequence[Scope] = SCOPES
    by_link: bool = False
    """With a link that this key has made for somebody else."""

    @property
    def identity(self) -> str:
        """The key, if it stands for one person."""
        return "" if self.by_link else self.key_id


class OpenLink(NamedTuple):
    """What a link is for."""

    link: Link
    approval: ApprovalConfig
    workflow: str


class Approvals:
    """Lists open approvals, and decides them."""

    def __init__(
        self,
        stores: Stores,
        executions: Executions,
        signals: Signals,
        notify_secret: str | None = None,
    ) -> None:
        """`notify_secret` signs the links in notifications."""
        self._stores = stores
        self._notify_secret = notify_secret
        self._executions = executions
        self._signals = signals

    async def inbox(
        self, decider: Decider, after: int = 0, limit: int = 50
    ) -> tuple[list[ApprovalItem], int | None]:
        """Open approvals in the order in which they began, and where the next page begins."""
        search = WaitSearch(kind="approval", after=after, limit=limit + 1)
        rows = await self._stores.cold.waits.find(search)
        intents = await self._stores.cold.executions.intents(
            {row.wait.execution_id for row in rows}
        )
        items: list[ApprovalItem] = []
        for row in rows[:limit]:
            intent = intents.get(row.wait.execution_id)
            record = None if intent is None else intent.record
            items.append(_item(row, record, decider))
        return items, rows[limit - 1].id if len(rows) > limit else None

    async def decide(  # noqa: PLR0913 -- what a decision has
        self,
        execution_id: str,
        node_id: str,
        decision: Decision,
        decider: Decider,
        *,
        comment: str | None = None,
        form: Any = None,
    ) -> Decided:
        """Decide an open approval.

        Raises `NotFound`, `Conflict` if it is decided or over, `Unauthorized` if this caller may
        not decide, or `InvalidInput` for a form that doesn't fit.
        """
        self._stores.hot.check_open()
        stored = await self._executions.stored(execution_id)
        plan = await self._executions.plan(stored.record)
        run, approval = _open_approval(stored, plan, node_id)
        refusal = refusal_of(approval, stored.record, decider)
        if refusal is not None:
            raise Unauthorized(refusal)
        now = self._stores.hot.now()
        _check_time(run, approval, now)
        _check_content(approval, decision, comment, form)

        payload = {"decision": decision, "comment": comment, "form": form, "key": decider.identity}
        signal = NewSignal(
            execution_id=execution_id,
            name=decision_name(node_id, run.attempt),
            payload=encoded_payload(payload),
            sender=decider.name,
            at=now,
        )
        before = 0

        def judge(earlier: Sequence[SignalReceived]) -> None:
            nonlocal before
            before = len(earlier)
            # again: the owner reads what is stored when this is over, and not much later
            _check_time(run, approval, self._stores.hot.now())
            _judge(earlier, approval, decider)

        await self._signals.store(signal, stored, judge)
        is_final = decision == "rejected" or before + 1 >= approval.needed
        return Decided(
            execution_id=execution_id,
            node_id=node_id,
            decision=decision,
            by=decider.name,
            is_final=is_final,
        )

    async def link(
        self, execution_id: str, node_id: str, by: str, seconds: float, decider: Decider
    ) -> tuple[str, float]:
        """A token with which somebody decides this approval once, and when it expires.

        Raises as `decide` does, and `Conflict` without an API key, as nobody could revoke the link.
        """
        stored = await self._executions.stored(execution_id)
        plan = await self._executions.plan(stored.record)
        run, approval = _open_approval(stored, plan, node_id)
        refusal = refusal_of(approval, stored.record, decider)
        if refusal is not None:
            raise Unauthorized(refusal)
        keys = await self._stores.cold.api_keys.keys()
        key = next((key for key in keys if key.id == decider.key_id), None)
        if key is None:
            raise Conflict("a link is made with an API key, which signs it; create one")
        expires_at = self._stores.hot.now() + seconds
        link = Link(execution_id, node_id, run.attempt, by, key.id, expires_at)
        return approval_links.sign(link, key.hash), expires_at

    async def open_link(self, token: str) -> OpenLink:
        """What a link is for. Raises `NotFound`, or `Conflict` if the approval is over."""
        link, _ = await self._read(token)
        stored = await self._executions.stored(link.execution_id)
        plan = await self._executions.plan(stored.record)
        run, approval = _open_approval(stored, plan, link.node_id)
        if run.attempt != link.attempt:
            raise Conflict("the approval is over: another one was opened in its place")
        return OpenLink(link, approval, stored.record.workflow)

    async def decide_by_link(
        self, token: str, decision: Decision, *, comment: str | None = None, form: Any = None
    ) -> Decided:
        """Decide with a link. Raises as `open_link` and `decide` do."""
        link, key = await self._read(token)
        await self.open_link(token)
        decider = Decider(link.by, scopes=("approve",), by_link=True)
        if key is not None:
            decider = Decider(link.by, key.id, key.scopes, by_link=True)
        return await self.decide(
            link.execution_id, link.node_id, decision, decider, comment=comment, form=form
        )

    async def _read(self, token: str) -> tuple[Link, ApiKey | None]:
        keys = self._stores.cold.api_keys
        now = self._stores.hot.now()
        return await approval_links.read(token, keys, now, self._notify_secret)


def _item(row: WaitRow, record: ExecutionRecord | None, decider: Decider) -> ApprovalItem:
    approval = approval_config(msgspec.json.decode(row.wait.config))
    may_decide = record is not None and refusal_of(approval, record, decider) is None
    return approval_item(row, approval, may_decide=may_decide)


def _open_approval(stored: Stored, plan: Plan, node_id: str) -> tuple[NodeRun, ApprovalConfig]:
    """The record and the config of a node that waits for a decision."""
    node = node_at(plan, node_id)
    if node is None:
        raise NotFound(no_node(node_id, plan))
    if node.handler != "approval":
        raise Conflict(f"the node {node_id!r} doesn't wait for a decision")
    run = stored.runs.get(node_id)
    if run is None:
        raise Conflict(f"the node {node_id!r} hasn't begun to wait for a decision")
    if run.state is not NodeState.WAITING or run.more is None or run.more.config is None:
        raise Conflict(f"the approval is over: {node_id!r} is {_end_of(run)}")
    if stored.record.state in EXECUTION_ENDS:
        raise Conflict(f"the approval is over: the execution is {stored.record.state}")
    return run, approval_config(msgspec.json.decode(run.more.config))


def _end_of(run: NodeRun) -> str:
    """How an approval ended: `COMPLETED, approved by Ada, 2026-…`."""
    parts = [str(run.state)]
    if run.reason:
        parts.append(run.reason)
    if run.finished_at is not None:
        parts.append(time_text(run.finished_at))
    return ", ".join(parts)


def refusal_of(approval: ApprovalConfig, record: ExecutionRecord, decider: Decider) -> str | None:
    """Why this caller may not decide; None if it may."""
    needed: Scope = next(scope for scope in SCOPES if scope == approval.scope)
    if not includes(decider.scopes, needed):
        return f"this needs an API key with the scope {approval.scope}"
    if approval.keys and decider.key_id not in approval.keys:
        return "this approval names the API keys that may decide, and yours isn't one of them"
    if approval.not_starter and decider.key_id and decider.key_id == record.started_by:
        return "whoever started the execution may not decide this"
    return None


def _check_time(run: NodeRun, approval: ApprovalConfig, now: float) -> None:
    if approval.expires_seconds is None or run.started_at is None:
        return
    expires_at = run.started_at + approval.expires_seconds
    if now > expires_at:
        raise Conflict(f"the approval expired at {time_text(expires_at)}")


def _check_content(
    approval: ApprovalConfig, decision: Decision, comment: str | None, form: Any
) -> None:
    is_needed = approval.comment == "always" or (
        approval.comment == "on_reject" and decision == "rejected"
    )
    if is_needed and not (comment or "").strip():
        problem = Problem("missing_comment", "comment", "a comment is needed")
        raise InvalidInput("a comment is needed", [problem])
    if comment is not None and len(comment) > COMMENT_CHARACTERS_MAX:
        raise InvalidInput(f"the comment has more than {COMMENT_CHARACTERS_MAX:,} characters")
    # what a rejection fills in is of no use
    if approval.form is None or decision == "rejected":
        return
    problems = [
        Problem(problem.code, f"form.{problem.path}".rstrip("."), problem.message)
        for problem in schema_problems(approval.form, form)
    ]
    if problems:
        raise InvalidInput(f"the form doesn't fit: {'; '.join(lines_of(problems))}", problems)


def _judge(earlier: Sequence[SignalReceived], approval: ApprovalConfig, decider: Decider) -> None:
    """Raise if earlier decisions leave nothing to decide for this caller."""
    approvals = 0
    for signal in earlier:
        payload = msgspec.json.decode(signal.payload)
        approvals += payload["decision"] == "approved"
        is_last = payload["decision"] == "rejected" or approvals >= approval.needed
        about = f"{payload['decision']} by {signal.sender or 'somebody'} at {time_text(signal.at)}"
        if is_last:
            raise Conflict(f"the approval is decided: {about}")
        is_same_key = bool(decider.identity) and decider.identity == payload.get("key")
        if is_same_key or decider.name == signal.sender:
            raise Conflict(f"you have decided already: {about}")
