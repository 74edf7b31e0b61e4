"""The page behind a link to an approval: plain HTML without scripts.

GET only shows it, as mail scanners open links; its buttons send the decision.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from penstock.api.audit_log import note
from penstock.api.routing import Router
from penstock.errors import Conflict, InvalidInput, NotFound, PenstockError, Unauthorized
from penstock.service import Service
from penstock.service.approvals import OpenLink
from penstock.views.approvals import Decision

BODY_BYTES_MAX = 64 * 1024
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; }
pre { white-space: pre-wrap; font: inherit; }
label { display: block; margin: .75rem 0; }
input, select, textarea { font: inherit; display: block; width: 100%; box-sizing: border-box; }
input[type=checkbox] { display: inline; width: auto; }
button { font: inherit; padding: .4rem 1.2rem; margin: 1rem 1rem 0 0; }
"""
_STYLE_HASH = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}';"
        " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
INPUT_TYPES = {"number": "number", "integer": "number", "string": "text"}


def routes(service: Service) -> Router:
    router = Router()

    @router.get("/approve/{token}")
    async def show(token: str) -> Response:
        try:
            opened = await service.approvals.open_link(token)
        except (NotFound, Conflict) as error:
            return _refused(error)
        return _page(opened.approval.title, _form(opened))

    @router.post("/approve/{token}")
    async def decide(token: str, request: Request) -> Response:
        try:
            opened = await service.approvals.open_link(token)
            fields = await _fields(request)
            about = f"executions/{opened.link.execution_id}"
            note(request.scope, about, node_id=opened.link.node_id[:200], by=opened.link.by)
            decided = await service.approvals.decide_by_link(
                token,
                _decision(fields),
                comment=fields.get("comment") or None,
                form=_form_value(opened.approval.form, fields),
            )
        except (NotFound, Conflict, Unauthorized) as error:
            return _refused(error)
        except InvalidInput as error:
            return _page("This can't be sent", f"<p>{escape(str(error))}</p>", 422)
        more = "" if decided.is_final else " More must approve before it goes on."
        return _page("Thank you", f"<p>You have {decided.decision} it.{more}</p>")

    return router


def _refused(error: PenstockError) -> Response:
    """A link that is of no use any more."""
    status = 403 if isinstance(error, Unauthorized) else 410
    return _page("This link is of no use any more", f"<p>{escape(str(error))}</p>", status)


async def _fields(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise InvalidInput(f"it has more than {BODY_BYTES_MAX:,} bytes")
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise InvalidInput("it isn't a form") from None
    return {name: values[-1] for name, values in fields.items()}


def _decision(fields: Mapping[str, str]) -> Decision:
    if fields.get("decision") == "approved":
        return "approved"
    if fields.get("decision") == "rejected":
        return "rejected"
    raise InvalidInput("the decision is approved or rejected")


def _properties(form: Any) -> dict[str, Any] | None:
    """The properties that have fields of their own; None if the whole form is one field."""
    properties = form.get("properties") if isinstance(form, dict) else None
    if not isinstance(properties, dict) or not properties:
        return None
    return {name: shape if isinstance(shape, dict) else {} for name, shape in properties.items()}


def _form_value(form: Any, fields: Mapping[str, str]) -> Any:
    """The value of the form that was filled in."""
    if form is None:
        return None
    properties = _properties(form)
    if properties is None:
        return _json(fields.get("form", ""))
    value: dict[str, Any] = {}
    for name, shape in properties.items():
        text = fields.get(f"form.{name}", "")
        if shape.get("type") == "boolean":
            value[name] = text == "true"
        elif text:
            is_text = shape.get("type") == "string"
            value[name] = text if is_text else _json(text)
    return value


def _json(text: str) -> Any:
    """JSON, or the text itself, as of a choice that is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _form(opened: OpenLink) -> str:
    approval = opened.approval
    text = approval.text
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, indent=2)
    parts = [f"<p>{escape(opened.workflow)}, for {escape(opened.link.by)}</p>"]
    if text is not None:
        parts.append(f"<pre>{escape(shown)}</pre>")
    parts += ['<form method="post">', *_form_fields(approval.form)]
    parts.append('<label>Comment<textarea name="comment" rows="2"></textarea></label>')
    for value, label in (("approved", "Approve"), ("rejected", "Reject")):
        parts.append(f'<button name="decision" value="{value}">{label}</button>')
    return "".join([*parts, "</form>"])


def _form_fields(form: Any) -> Iterator[str]:
    if form is None:
        return
    properties = _properties(form)
    if properties is None:
        yield '<label>Form (JSON)<textarea name="form" rows="4"></textarea></label>'
        return
    for name, shape in properties.items():
        label = escape(str(shape.get("title") or name))
        yield f"<label>{label}{_field(f'form.{name}', shape)}</label>"


def _field(name: str, shape: Mapping[str, Any]) -> str:
    named = f'name="{escape(name)}"'
    choices = shape.get("enum")
    if isinstance(choices, list):
        texts = [choice if isinstance(choice, str) else json.dumps(choice) for choice in choices]
        options = "".join(f"<option>{escape(text)}</option>" for text in texts)
        return f"<select {named}>{options}</select>"
    kind = shape.get("type")
    if kind == "boolean":
        return f' <input type="checkbox" value="true" {named}>'
    if kind == "string" and shape.get("format") == "date":
        return f'<input type="date" {named}>'
    if kind in INPUT_TYPES:
        return f'<input type="{INPUT_TYPES[kind]}" step="any" {named}>'
    return f'<textarea rows="3" {named}></textarea>'


def _page(title: str, body: str, status: int = 200) -> Response:
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f"<h1>{escape(title)}</h1>{body}</html>"
    )
    return Response(html, status, HEADERS, media_type="text/html; charset=utf-8")
