"""Authentication by API keys and scopes, and protection of a local service against web pages.

There are two middlewares. `Identify` determines the caller and the route; it refuses nothing.
`Access` refuses: it stands inside of the rate limit and the audit log, so that refused calls are
counted and recorded too. Without `Identify`, `Access` refuses every call.

On loopback, everybody on this machine may do everything without a key, until the store has one:
from then on everybody needs a key. A request that came through a proxy needs one in any case, since
the proxy may serve the whole world. The setting `require_keys` overrides this. A key that is sent
must be valid, also where none is needed.

An app that this one is mounted in may decide by its own sessions who may do what. A key that is
sent counts all the same.

On loopback, and where another app's sessions count, requests that a browser sends for a foreign
page are refused: those with an `Origin` that isn't this service (a page on another port of this
machine is foreign too), or with a body of a type that a page may send to any site without being
asked. On loopback, so are those with a foreign `Host` (a name that was made to point here).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Request

from penstock.api.access import (
    CALLER,
    OPEN,
    READING,
    RECEIVE_HOOK,
    RECHECK,
    ROUTE,
    Caller,
    Found,
    Needed,
    Routes,
)
from penstock.api.audit_log import skip_audit
from penstock.api.client_address import TrustedProxies
from penstock.api.failed_logins import FailedLogins
from penstock.api.problems import problem_response
from penstock.api.routing import path_of
from penstock.config import Settings, hide_password, is_loopback, is_redis
from penstock.errors import SettingsError, StoreError
from penstock.service.keys import SCOPES, Keys, includes
from penstock.service.outages import shown_outage
from penstock.stores.records import Scope

FORM_OPERATIONS = frozenset({"decide_by_link", RECEIVE_HOOK})
"""The operations that take other bodies than JSON."""
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
"""With `_FORWARDING`, the headers that proxies add to a request that they pass on."""
_OWN_SITES = frozenset({"same-origin", "none"})
"""`Sec-Fetch-Site` of this service's own pages, and of an address that a user has typed."""
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.ASCII)
_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE)


Authorized: TypeAlias = Scope | tuple[Scope, str] | None
"""What a caller may do, and optionally the name that the audit log gives them; None is nothing."""
Authorize: TypeAlias = Callable[[Request], Authorized | Awaitable[Authorized]]
NOT_AUTHORIZED = "you may not use this service, or you aren't signed in to its application"
KEY_PREFIX = "pk_"
NO_KEY = "send a key, as 'Authorization: Bearer pk_…'; 'penstock keys create' makes one"


async def require_keys(settings: Settings, keys: Keys) -> None:
    """Check that a service that others can reach has an API key. Raises `SettingsError`."""
    if await keys.any():
        return
    make = f"make one with '{_create_command(settings)}'"
    if not is_loopback(settings.host):
        raise SettingsError(
            f"host is {settings.host}, where others can reach the service,"
            f" and there is no API key yet; {make}, or bind to 127.0.0.1"
        )
    if settings.require_keys == "always":
        raise SettingsError(f"require_keys is always, and there is no API key yet; {make}")


def _create_command(settings: Settings) -> str:
    """The command that creates a key in the store of these settings."""
    command = "penstock keys create --scope submit"
    if settings.store != Settings().store:
        command += f" --store {hide_password(settings.store)}"
    if settings.database is not None and is_redis(settings.store):
        command += f" --database {hide_password(settings.database)}"
    return command


class Identify:
    """The outer middleware: puts the `Caller` and the route into the request's scope."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        routes: Routes,
        keys: Keys,
        settings: Settings,
        authorize: Authorize | None = None,
    ) -> None:
        self._app = app
        self._authorize = authorize
        self._routes = routes
        self._keys = keys
        self._local = is_loopback(settings.host)
        self._require_keys = settings.require_keys
        self._trusted_proxies = TrustedProxies(settings.trusted_proxies)

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        # There are no web sockets. Whoever adds one has to check here who may use it.
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return

        if scope["type"] == "http":
            route = self._routes.find(scope["method"], path_of(scope))
            scope[ROUTE] = route
            scope[RECHECK] = partial(self._caller, scope, route)
            try:
                scope[CALLER] = await self._caller(scope, route)
            except StoreError as error:
                refusal = problem_response(
                    503, "unavailable", shown_outage(error), headers={"Retry-After": "1"}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _caller(self, scope: Request, route: Found | None) -> Caller:
        address = self._trusted_proxies.client_address(scope)
        if needed(scope, route) == OPEN:
            return Caller(address=address)

        credentials = list(_headers(scope, b"authorization"))
        if self._authorize is not None and not any(map(_is_key, credentials)):
            return await _authorized(self._authorize, scope, address)
        if not credentials:
            scopes = SCOPES if await self._is_free(scope) else ()
            return Caller(scopes=scopes, address=address)

        match = _BEARER.fullmatch(credentials[0]) if len(credentials) == 1 else None
        key = await self._keys.check(match[1] if match else "")
        if key is None:
            return Caller(address=address)
        return Caller(key.id, key.name, key.scopes, address)

    async def _is_free(self, scope: Request) -> bool:
        """Whether this request needs no key."""
        if not self._local or self._require_keys == "always":
            return False
        if self._require_keys == "never":
            return True
        return not was_forwarded(scope) and not await self._keys.exist()


class Access:
    """The inner middleware: passes a request on to the app, or answers why not."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        routes: Routes,
        settings: Settings,
        failed_logins: FailedLogins,
        has_sessions: bool = False,
    ) -> None:
        """`has_sessions`: who may do what is decided by the sessions of another app."""
        self._app = app
        self._routes = routes
        self._failed_logins = failed_logins
        self._has_sessions = has_sessions
        self._local = is_loopback(settings.host) and not has_sessions

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        refusal = self._foreign(scope) or self._unknown(scope)
        if refusal:
            skip_audit(scope)
        else:
            refusal = _forbidden(scope)
        app = refusal or self._app
        await app(scope, receive, send)

    def _foreign(self, scope: Request) -> Response | None:
        """The refusal of a request that a browser sent for a foreign page."""
        if not self._local and not self._has_sessions:
            return None
        hosts = list(_headers(scope, b"host"))
        if len(hosts) != 1 or (self._local and not _LOCAL_HOST.fullmatch(hosts[0])):
            return problem_response(
                403, "foreign_host", "this service is for this machine: call it as 'localhost'"
            )
        if _comes_from_elsewhere(scope):
            return problem_response(
                403, "foreign_origin", "pages of other sites may not use this service"
            )
        if scope["method"] not in READING and _has_body(scope) and not _takes_form(scope):
            types = list(_headers(scope, b"content-type"))
            if len(types) != 1 or not _JSON.fullmatch(types[0]):
                detail = "send the body as JSON, with the header 'Content-Type: application/json'"
                return problem_response(415, "unsupported_media_type", detail)
        return None

    def _unknown(self, scope: Request) -> Response | None:
        """The refusal of a request that has no valid key, or no route.

        The key is checked first, so that a caller without one can't find out which routes exist.
        """
        route: Found | None = scope.get(ROUTE)
        caller: Caller = scope.get(CALLER, Caller())
        if not caller.scopes and needed(scope, route) != OPEN:
            credentials = list(_headers(scope, b"authorization"))
            if self._has_sessions and not any(map(_is_key, credentials)):
                return problem_response(403, "forbidden", NOT_AUTHORIZED)
            if credentials:
                target = f"{scope['method']} {path_of(scope)}"
                self._failed_logins.note(caller.address, target, credentials[0])
            return _unauthorized(key_sent=bool(credentials))
        if route is not None:
            return None

        methods = self._routes.methods(path_of(scope))
        if not methods:
            return problem_response(
                404, "not_found", "there is nothing at this address; /docs lists what there is"
            )
        detail = f"{scope['method']} isn't possible here; {', '.join(methods)} is"
        return problem_response(
            405, "method_not_allowed", detail, headers={"Allow": ", ".join(methods)}
        )


def _is_key(credentials: str) -> bool:
    """Whether the credentials are an API key, and not a token of another app."""
    match = _BEARER.fullmatch(credentials)
    return match is not None and match[1].startswith(KEY_PREFIX)


async def _authorized(authorize: Authorize, scope: Request, address: str) -> Caller:
    """The caller as the app that this one is mounted in knows them."""
    answer = authorize(scope)
    if inspect.isawaitable(answer):
        answer = await answer
    if answer is None:
        return Caller(address=address)
    granted, name = answer if isinstance(answer, tuple) else (answer, "")
    if granted not in SCOPES:
        listed = ", ".join(SCOPES)
        raise SettingsError(
            f"authorize returned {granted!r}; it must return None or one of {listed}"
        )
    return Caller("", name, (granted,), address)


def needed(scope: Request, route: Found | None) -> Needed:
    """The scope that a request needs.

    A path is OPEN only if it is spelled exactly as in the table, without any `%`.
    """
    if route is None:
        return "admin"
    if route.scope == OPEN and scope.get("raw_path") != scope["path"].encode():
        return "read"
    return route.scope


def _headers(scope: Request, name: bytes) -> Iterator[str]:
    return (value.decode("latin-1") for key, value in scope["headers"] if key == name)


def was_forwarded(scope: Request) -> bool:
    """Whether a request came through a proxy."""
    return any(
        name in _FORWARDING or name.startswith(_FORWARDING_PREFIX) for name, _ in scope["headers"]
    )


def _comes_from_elsewhere(scope: Request) -> bool:
    [host] = _headers(scope, b"host")
    if any(not _is_own_origin(origin, host) for origin in _headers(scope, b"origin")):
        return True
    if all(site in _OWN_SITES for site in _headers(scope, b"sec-fetch-site")):
        return False

    # A link on a foreign page may be followed: the user sees the answer, the page doesn't.
    navigates = "navigate" in _headers(scope, b"sec-fetch-mode")
    loads_document = "document" in _headers(scope, b"sec-fetch-dest")
    return not (navigates and loads_document and scope["method"] in READING)


def _is_own_origin(origin: str, host: str) -> bool:
    """Whether an origin, which is a scheme, a name and a port, is this service.

    The origin of another server on this machine differs in the port.
    """
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        return False
    default_port = _DEFAULT_PORTS[match[1].lower()]
    return match[2].lower().removesuffix(default_port) == host.lower().removesuffix(default_port)


def _takes_form(scope: Request) -> bool:
    """Whether the route takes what a page's form sends.

    The token in its path, or the signature, is the right to it, which no foreign page has.
    """
    route: Found | None = scope.get(ROUTE)
    return route is not None and route.rule.operation in FORM_OPERATIONS


def _has_body(scope: Request) -> bool:
    sized = any(length.strip() != "0" for length in _headers(scope, b"content-length"))
    return sized or bool(list(_headers(scope, b"transfer-encoding")))


def _unauthorized(*, key_sent: bool) -> Response:
    detail = "this key isn't known, or it was revoked" if key_sent else NO_KEY
    return problem_response(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


def _forbidden(scope: Request) -> Response | None:
    least = needed(scope, scope[ROUTE])
    caller = scope[CALLER]
    if least == OPEN or includes(caller.scopes, least):
        return None
    detail = (
        f"this needs a key with the scope '{least}';"
        f" the key {caller.key_id} has {', '.join(caller.scopes)}"
    )
    if not caller.key_id:
        detail = f"this needs the scope '{least}'; you have {', '.join(caller.scopes)}"
    return problem_response(403, "forbidden", detail)
