"""The OpenAPI document, and the same as HTML, at `/docs`.

The page is rendered once, and has no script and nothing from other sites: the UI stores its key on
this origin, so a script here could read it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.api.mounting import prefix_of
from penstock.api.routing import Router

METHODS = ("get", "post", "put", "patch", "delete")
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; }
pre { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
details { border-top: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
details { padding: .4rem 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; }
table { border-collapse: collapse; }
td { padding: .15rem 1rem .15rem 0; vertical-align: top; }
"""
_STYLE_HASH = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def docs_routes(openapi: Callable[[], Mapping[str, Any]]) -> Router:
    router = Router()
    openapi = cache(openapi)

    @cache
    def rendered() -> bytes:
        return render(openapi()).encode()

    @router.get("/openapi.json")
    async def document(request: Request) -> Response:
        prefix = prefix_of(request.scope)
        servers = {"servers": [{"url": prefix}]} if prefix else {}
        body = json.dumps({**openapi(), **servers}, ensure_ascii=False).encode()
        return Response(body, media_type="application/json")

    @router.get("/docs")
    async def docs() -> Response:
        return Response(rendered(), headers=HEADERS, media_type="text/html; charset=utf-8")

    return router


def render(document: Mapping[str, Any]) -> str:
    """The OpenAPI document as HTML.

    Every text of the document is escaped. Names of parameters come from code today, but that may
    change.
    """
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    schemas = sorted(document["components"]["schemas"].items())
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1><p>{escape(info.get('description', ''))}</p>",
        # relative, as the app may be mounted under a path
        "<p>For tools: <a href='openapi.json'>/openapi.json</a>,",
        " and for documents <a href='schema.json'>/schema.json</a>.",
        " The UI: <a href='ui/'>/ui/</a>.</p>",
        *_operations(document),
        "<h2 id='schemas'>Schemas</h2>",
        *(_schema(name, schema) for name, schema in schemas),
        "</body></html>",
    ]
    return "".join(parts)


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method not in methods:
                continue
            operation = methods[method]
            tags = operation.get("tags") or ["other"]
            by_tag.setdefault(tags[0], []).append(_operation(method, path, operation))

    for tag, operations in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>"
        yield from operations


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    summary = escape(operation.get("summary", ""))
    parts = [
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code>",
        f" {summary}</summary>",
        f"<p>{escape(operation.get('description', ''))}</p>",
    ]

    parameters = operation.get("parameters", [])
    if parameters:
        rows = "".join(map(_parameter, parameters))
        parts.append(f"<h4>Parameters</h4><table>{rows}</table>")

    body = operation.get("requestBody")
    if body:
        parts.append(f"<h4>Body</h4>{_content(body)}")

    parts.append("<h4>Answers</h4><table>")
    for status, response in operation.get("responses", {}).items():
        description = escape(response.get("description", ""))
        parts.append(_table_row([escape(str(status)), description, _content(response)]))
    parts.append("</table></details>")
    return "".join(parts)


def _parameter(parameter: Mapping[str, Any]) -> str:
    cells = [
        f"<code>{escape(parameter['name'])}</code>",
        escape(parameter["in"]),
        "required" if parameter.get("required") else "",
        escape(parameter.get("description", "")),
        _shape(parameter.get("schema", {})),
    ]
    return _table_row(cells)


def _table_row(cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _content(described: Mapping[str, Any]) -> str:
    return " ".join(
        f"<code>{escape(media)}</code> {_shape(content.get('schema', {}))}"
        for media, content in described.get("content", {}).items()
    )


def _shape(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if not schema:
        return ""
    return f"<code>{escape(json.dumps(schema, ensure_ascii=False))}</code>"


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    title = escape(name)
    text = escape(json.dumps(schema, indent=2, ensure_ascii=False))
    return (
        f"<details id='{title}'><summary><code>{title}</code></summary><pre>{text}</pre></details>"
    )
