"""Keys and scopes, and a local service that no web page can drive.

Two steps. `Identify` finds out who calls and what for; it refuses nothing. `Access` refuses: it
stands inside of what counts and records, so that refused calls are counted and recorded too.
Without the first, the second lets nothing by.

Bound to loopback, everybody on this machine may do everything and needs no key, until the store has
one: from then on everybody needs a key. What came through a proxy needs one in any case, since the
proxy may serve the whole world. The setting `require_keys` says otherwise. A key that is sent must
be good, and counts.

Bound to loopback, what a browser brings along for a foreign page is refused: a foreign `Host` (a
name that was made to point here), an `Origin` that isn't this very service (a page on another port
of this machine is foreign too), and bodies of the types that a page may send to anybody without
being asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_address

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Request

from penstock.api.access import CALLER, OPEN, READING, RECHECK, ROUTE, Caller, Found, Needed, Routes
from penstock.api.audit_log import skip_audit
from penstock.api.client_address import TrustedProxies
from penstock.api.failed_logins import FailedLogins
from penstock.api.problems import problem_response
from penstock.config import Settings
from penstock.errors import SettingsError, StoreError
from penstock.service.keys import SCOPES, Keys, includes
from penstock.service.outages import shown_outage

_AUTHORITY = r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?"
_LOCAL_HOST = re.compile(_AUTHORITY, re.IGNORECASE)
_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_FORWARDING = frozenset(
    {
        b"forwarded",
        b"via",
        b"cdn-loop",
        b"x-real-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"true-client-ip",
        b"cf-connecting-ip",
        b"fastly-client-ip",
        b"x-original-host",
        b"x-original-forwarded-for",
        b"x-envoy-external-address",
    }
)
_FORWARDING_PREFIX = b"x-forwarded"
"""What proxies add to a request that they pass on."""
_OWN_SITES = frozenset({"same-origin", "none"})
"""`Sec-Fetch-Site` of this service's own pages, and of an address that somebody has typed."""
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.ASCII)
_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE)


NO_KEY = "send a key, as 'Authorization: Bearer pk_…'; 'penstock keys create' makes one"


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def require_keys(settings: Settings, keys: Keys) -> None:
    """Raises `SettingsError` for a service that others could reach and nobody has a key for."""
    if await keys.any():
        return
    make = "make one with 'penstock keys create --scope submit'"
    if not is_loopback(settings.host):
        raise SettingsError(
            f"host is {settings.host}, where others can reach the service, and there is no API key yet; "
            f"{make}, or bind to 127.0.0.1"
        )
    if settings.require_keys == "always":
        raise SettingsError(f"require_keys is always, and there is no API key yet; {make}")


class Identify:
    """Outermost: puts a `Caller` and the route into the request."""

    def __init__(self, app: ASGIApp, *, routes: Routes, keys: Keys, settings: Settings) -> None:
        self._app, self._routes, self._keys = app, routes, keys
        self._local, self._require_keys = is_loopback(settings.host), settings.require_keys
        self._trusted_proxies = TrustedProxies(settings.trusted_proxies)

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "websocket"
        ):  # there are none; whoever adds one has to say here who may use it
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            found = scope[ROUTE] = self._routes.find(scope["method"], _path(scope))
            scope[RECHECK] = partial(self._caller, scope, found)
            try:
                scope[CALLER] = await self._caller(scope, found)
            except StoreError as error:
                refusal = problem_response(
                    503, "unavailable", shown_outage(error), headers={"Retry-After": "1"}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _caller(self, scope: Request, found: Found | None) -> Caller:
        address = self._trusted_proxies.client_address(scope)
        given = list(_headers(scope, b"authorization"))
        if needed(scope, found) == OPEN:
            return Caller(address=address)
        if not given:
            return Caller(scopes=SCOPES if await self._is_free(scope) else (), address=address)
        match = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
        key = await self._keys.check(match[1] if match else "")
        return Caller(key.id, key.name, key.scopes, address) if key else Caller(address=address)

    async def _is_free(self, scope: Request) -> bool:
        """Whether this request needs no key."""
        if not self._local or self._require_keys == "always":
            return False
        if self._require_keys == "never":
            return True
        return not _was_forwarded(scope) and not await self._keys.exist()


class Access:
    """Innermost: lets a request through to the app, or answers why not."""

    def __init__(
        self, app: ASGIApp, *, routes: Routes, settings: Settings, failed_logins: FailedLogins
    ) -> None:
        self._app, self._routes, self._failed_logins = app, routes, failed_logins
        self._local = is_loopback(settings.host)

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._foreign(scope) or self._unknown(scope)
        if refusal:
            skip_audit(scope)
        else:
            refusal = _forbidden(scope)
        await (refusal or self._app)(scope, receive, send)

    def _foreign(self, scope: Request) -> Response | None:
        if not self._local:
            return None
        hosts = list(_headers(scope, b"host"))
        if len(hosts) != 1 or not _LOCAL_HOST.fullmatch(hosts[0]):
            return problem_response(
                403, "foreign_host", "this service is for this machine: call it as 'localhost'"
            )
        if _comes_from_elsewhere(scope):
            return problem_response(
                403, "foreign_origin", "pages of other sites may not use this service"
            )
        if scope["method"] not in READING and _has_body(scope):
            types = list(_headers(scope, b"content-type"))
            if len(types) != 1 or not _JSON.fullmatch(types[0]):
                detail = "send the body as JSON, with the header 'Content-Type: application/json'"
                return problem_response(415, "unsupported_media_type", detail)
        return None

    def _unknown(self, scope: Request) -> Response | None:
        """The refusal of a request that has no good key, or no route.

        Who comes first, so that strangers can't find out what there is.
        """
        found: Found | None = scope.get(ROUTE)
        caller: Caller = scope.get(CALLER, Caller())
        if not caller.scopes and needed(scope, found) != OPEN:
            given = list(_headers(scope, b"authorization"))
            if given:
                self._failed_logins.note(
                    caller.address, f"{scope['method']} {_path(scope)}", given[0]
                )
            return _unauthorized(given=bool(given))
        if found is not None:
            return None
        methods = self._routes.methods(_path(scope))
        if not methods:
            return problem_response(
                404, "not_found", "there is nothing at this address; /docs lists what there is"
            )
        detail = f"{scope['method']} isn't possible here; {', '.join(methods)} is"
        return problem_response(
            405, "method_not_allowed", detail, headers={"Allow": ", ".join(methods)}
        )


def needed(scope: Request, found: Found | None) -> Needed:
    """The scope that a request needs.

    OPEN is only what is spelled exactly as in the list, without any `%`.
    """
    if found is None:
        return "admin"
    if found.scope == OPEN and scope.get("raw_path") != scope["path"].encode():
        return "read"
    return found.scope


def _path(scope: Request) -> str:
    """The path as the router has it: without the path that the app is mounted under."""
    path: str = scope["path"]
    root = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root + "/") else path


def _headers(scope: Request, name: bytes) -> Iterator[str]:
    return (value.decode("latin-1") for key, value in scope["headers"] if key == name)


def _was_forwarded(scope: Request) -> bool:
    return any(
        name in _FORWARDING or name.startswith(_FORWARDING_PREFIX) for name, _ in scope["headers"]
    )


def _comes_from_elsewhere(scope: Request) -> bool:
    [host] = _headers(scope, b"host")
    if any(not _is_own_origin(origin, host) for origin in _headers(scope, b"origin")):
        return True
    if all(site in _OWN_SITES for site in _headers(scope, b"sec-fetch-site")):
        return False
    # A link on a page elsewhere may be followed: the one who clicks sees the answer, the page
    # doesn't.
    followed = "navigate" in _headers(scope, b"sec-fetch-mode") and "document" in _headers(
        scope, b"sec-fetch-dest"
    )
    return not (followed and scope["method"] in READING)


def _is_own_origin(origin: str, host: str) -> bool:
    """An origin is a scheme, a name and a port: a page of another server on this machine differs in the port."""
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        return False
    default_port = _DEFAULT_PORTS[match[1].lower()]
    return match[2].lower().removesuffix(default_port) == host.lower().removesuffix(default_port)


def _has_body(scope: Request) -> bool:
    sized = any(length.strip() != "0" for length in _headers(scope, b"content-length"))
    return sized or bool(list(_headers(scope, b"transfer-encoding")))


def _unauthorized(*, given: bool) -> Response:
    detail = "this key isn't known, or it was revoked" if given else NO_KEY
    return problem_response(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


def _forbidden(scope: Request) -> Response | None:
    least, caller = needed(scope, scope[ROUTE]), scope[CALLER]
    if least == OPEN or includes(caller.scopes, least):
        return None
    detail = f"this needs a key with the scope '{least}'; the key {caller.key_id} has {', '.join(caller.scopes)}"
    return problem_response(403, "forbidden", detail)
