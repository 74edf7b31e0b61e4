"""`penstock.notify`: tells other services that an approval waits for a decision.

It is the handler of `release~notify`, the node beside an approval with `notify`. It posts
`{title, text, form, links, …}` as JSON to each address, through the client that all HTTP calls go
through. A request is signed as Standard Webhooks says: `webhook-id`, `webhook-timestamp` and, with
`PENSTOCK_NOTIFY_SECRET`, `webhook-signature`. The id is the same for each attempt, so that a
receiver can drop what comes twice.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from penstock.config import Settings
from penstock.definition.handler_configs import NOTIFY_MAX
from penstock.definition.model import NOTIFY_SUFFIX
from penstock.errors import Retryable, Terminal
from penstock.views.approval_links import NOTIFICATION, Link, sign
from penstock.worker.context import Context
from penstock.worker.handlers.http import HttpHandler, bad_config
from penstock.worker.handlers.http_exchange import Request, failure

APPROVAL_ATTEMPT = 1
"""An approval asks once in an execution."""
LINK_SECONDS = 7 * 86400.0
"""How long a link decides, if the approval doesn't expire before."""
PREFIX = "whsec_"
"""Before a secret that is written in base64, as Standard Webhooks has it."""


class NotifyHandler:
    def __init__(self, settings: Settings, http: HttpHandler) -> None:
        self._secret = settings.notify_secret
        self._public_url = (settings.public_url or "").rstrip("/")
        self._http = http

    async def __call__(self, config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        addresses = addresses_of(config)
        failures: list[Retryable | Terminal] = []
        for address in addresses:
            body = msgspec.json.encode(self.payload(config, ctx, address))
            request = Request(
                method="POST",
                url=address,
                headers=self._headers(body, ctx),
                body=body,
                secrets=tuple(ctx.secrets),
            )
            try:
                response = await self._http.send(request)
            except (Retryable, Terminal) as error:
                failures.append(error)
                continue
            if not request.accepts(response.status_code):
                failures.append(failure(request, response))
        # an address that can be tried again decides; the others have been told already
        failures.sort(key=lambda error: isinstance(error, Terminal))
        if failures:
            raise failures[0]
        return {"notified": len(addresses)}

    def payload(self, config: Mapping[str, Any], ctx: Context, address: str) -> dict[str, Any]:
        return {
            "type": "approval.requested",
            "title": config.get("title"),
            "text": config.get("text"),
            "form": config.get("form"),
            "execution_id": ctx.execution_id,
            "node_id": approval_of(ctx),
            "workflow": ctx.workflow,
            "links": self._links(config, ctx, address),
        }

    def _links(self, config: Mapping[str, Any], ctx: Context, address: str) -> dict[str, str]:
        """Where to decide: in the UI, and by a link if anybody with the scope may."""
        if not self._public_url:
            return {}
        links = {"ui": f"{self._public_url}/ui/#/approvals"}
        if self._secret and not config.get("approvers"):
            seconds = min(config.get("expires_seconds") or LINK_SECONDS, LINK_SECONDS)
            by = f"link to {urlsplit(address).hostname}"
            link = Link(
                ctx.execution_id,
                approval_of(ctx),
                APPROVAL_ATTEMPT,
                by,
                NOTIFICATION,
                time.time() + seconds,
            )
            links["decide"] = f"{self._public_url}/approve/{sign(link, self._secret.encode())}"
        return links

    def _headers(self, body: bytes, ctx: Context) -> dict[str, str]:
        message_id = quote(ctx.idempotency_key, safe=":/@[]")
        sent_at = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": sent_at,
        }
        if self._secret:
            headers["webhook-signature"] = signature(self._secret, message_id, sent_at, body)
        return headers


def approval_of(ctx: Context) -> str:
    """The node that waits, beside which this one is."""
    return ctx.node_id.removesuffix(NOTIFY_SUFFIX)


def addresses_of(config: Mapping[str, Any]) -> list[str]:
    """The addresses to tell. Raises `Terminal`."""
    notify = config.get("notify")
    addresses = [notify] if isinstance(notify, str) else notify
    if not isinstance(addresses, list) or not 0 < len(addresses) <= NOTIFY_MAX:
        raise bad_config(f"notify must be an address, or a list of 1 to {NOTIFY_MAX}")
    for address in addresses:
        if not isinstance(address, str) or not address.startswith(("https://", "http://")):
            raise bad_config("notify must have addresses such as 'https://hooks.example.com/x'")
    return addresses


def signature(secret: str, message_id: str, sent_at: str, body: bytes) -> str:
    """The value of `webhook-signature`."""
    signed = f"{message_id}.{sent_at}.".encode() + body
    digest = hmac.new(signing_key(secret), signed, sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def signing_key(secret: str) -> bytes:
    """The bytes of a secret: base64 behind `whsec_`, else the text itself."""
    if secret.startswith(PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


async def mock_notify(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """With mocks nobody is told."""
    ctx.log.info("%s isn't told about %s: a mock", addresses_of(config), approval_of(ctx))
    return {"notified": 0, "mock": True}
