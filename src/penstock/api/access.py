"""Access rules: one table that says who may call what. A route that isn't in it can't be reached.

A row has the scope that a call needs, the operation's name and the object that it is about (for the
audit log). `read` < `submit` < `approve` < `operate` < `admin`: each scope includes those before
it. OPEN needs no key, and shows no user's data: two health checks for load balancers, the
description of the API, and the files of the UI. Only a link to an approval shows that approval.

Paths are matched with the patterns of the app's own router (`check_routes` takes them from it), and
where several match, the strictest scope counts. So no spelling of a path can get a weaker rule than
the route that it reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from starlette.applications import Starlette

from penstock.api.routing import routes_of
from penstock.errors import PenstockError
from penstock.service.keys import SCOPES
from penstock.stores.records import Scope

Needed: TypeAlias = Scope | Literal["open"]
OPEN: Final = "open"
BASE = "/api/v1"
PREFIXES = ("", "/api", "/v1", "/api/v1")
"""Path prefixes of the compatible routes."""
READING = frozenset({"GET", "HEAD"})
CALLER = "penstock.caller"
"""The key in a request's ASGI scope for its `Caller`."""
ROUTE = "penstock.route"
"""The key in a request's ASGI scope for its route, a `Found`, if there is one."""
RECHECK = "penstock.recheck"
"""The key in a request's ASGI scope for a function that identifies the caller again."""
_RANKS: dict[Needed, int] = {OPEN: 0, **{scope: rank for rank, scope in enumerate(SCOPES, 1)}}


class Caller(NamedTuple):
    """Who sends a request."""

    key_id: str = ""
    """The API key's id; empty where the service is open."""
    name: str = ""
    scopes: tuple[Scope, ...] = ()
    """The scopes of the caller's key; empty for a caller that isn't known."""
    address: str = ""


class Rule(NamedTuple):
    """The rule of a route: the scope that it needs, and what the audit log says about a call."""

    scope: Needed
    operation: str
    object: str
    """The object that the audit log names; `{0}` is the path's first parameter."""
    changes: bool


class RouteMissing(PenstockError):
    """The app has a route that isn't in the table, so it isn't known who may use it."""


_API: list[tuple[str, str, Scope, str, str]] = [
    ("GET", "/workflows", "read", "list_workflows", "workflows"),
    # Storing moves `latest`, and so changes what others run who start the workflow by its name.
    ("POST", "/workflows", "operate", "put_workflow", "workflows"),
    ("POST", "/workflows/validate", "read", "validate_workflow", "workflows"),
    ("GET", "/workflows/{}", "read", "get_workflow", "workflows/{0}"),
    ("DELETE", "/workflows/{}", "operate", "delete_workflow", "workflows/{0}"),
    ("GET", "/workflows/{}/versions", "read", "list_versions", "workflows/{0}"),
    ("GET", "/workflows/{}/graph", "read", "get_workflow_graph", "workflows/{0}"),
    ("GET", "/workflows/{}/aliases", "read", "list_aliases", "workflows/{0}"),
    ("PUT", "/workflows/{}/aliases/{}", "operate", "set_alias", "workflows/{0}"),
    ("DELETE", "/workflows/{}/aliases/{}", "operate", "remove_alias", "workflows/{0}"),
    ("GET", "/workflows/{}/stats", "read", "get_workflow_stats", "workflows/{0}"),
    ("GET", "/executions", "read", "list_executions", "executions"),
    ("POST", "/executions", "submit", "start_execution", "executions"),
    ("POST", "/executions/batch", "submit", "start_executions", "executions"),
    ("POST", "/executions/bulk", "operate", "steer_executions", "executions"),
    ("GET", "/executions/{}", "read", "get_execution", "executions/{0}"),
    ("GET", "/executions/{}/results", "read", "get_results", "executions/{0}"),
    ("GET", "/executions/{}/nodes", "read", "list_nodes", "executions/{0}"),
    ("GET", "/executions/{}/nodes/{}/items", "read", "follow_items", "executions/{0}"),
    ("GET", "/executions/{}/nodes/{}", "read", "get_node", "executions/{0}"),
    ("GET", "/executions/{}/nodes/{}/logs", "read", "get_node_logs", "executions/{0}"),
    ("GET", "/executions/{}/nodes/{}/why", "read", "explain_node", "executions/{0}"),
    ("GET", "/executions/{}/logs", "read", "get_execution_logs", "executions/{0}"),
    ("GET", "/executions/{}/definition", "read", "get_execution_definition", "executions/{0}"),
    ("GET", "/executions/{}/history", "read", "get_history", "executions/{0}"),
    ("GET", "/executions/{}/graph", "read", "get_graph", "executions/{0}"),
    ("GET", "/executions/{}/tree", "read", "get_tree", "executions/{0}"),
    ("GET", "/executions/{}/events", "read", "follow_execution", "executions/{0}"),
    ("POST", "/executions/{}/cancel", "operate", "cancel_execution", "executions/{0}"),
    ("POST", "/executions/{}/pause", "operate", "pause_execution", "executions/{0}"),
    ("POST", "/executions/{}/resume", "operate", "resume_execution", "executions/{0}"),
    ("POST", "/executions/{}/retry", "operate", "retry_execution", "executions/{0}"),
    ("GET", "/executions/{}/signals", "read", "list_signals", "executions/{0}"),
    # A signal makes an execution go on, as `resume` does.
    ("POST", "/executions/{}/signals", "operate", "send_signal", "executions/{0}"),
    ("POST", "/executions/{}/signals/{}", "operate", "send_signal_by_name", "executions/{0}"),
    ("POST", "/signals/{}", "operate", "post_signal", "signals/{0}"),
    ("GET", "/waits", "read", "list_waits", "waits"),
    ("GET", "/approvals", "read", "list_approvals", "approvals"),
    ("POST", "/executions/{}/approvals/{}", "approve", "decide_approval", "executions/{0}"),
    (
        "POST",
        "/executions/{}/approvals/{}/links",
        "approve",
        "make_approval_link",
        "executions/{0}",
    ),
    ("GET", "/events", "read", "follow_all", "executions"),
    ("GET", "/dead-letters", "read", "list_dead_letters", "dead-letters"),
    ("GET", "/errors", "read", "list_errors", "errors"),
    ("GET", "/search", "read", "search_values", "executions"),
    ("POST", "/dead-letters/retry", "operate", "retry_dead_letters", "dead-letters"),
    ("POST", "/dead-letters/drop", "operate", "drop_dead_letters", "dead-letters"),
    ("GET", "/dead-letters/{}", "read", "get_dead_letter", "dead-letters/{0}"),
    ("DELETE", "/dead-letters/{}", "operate", "drop_dead_letter", "dead-letters/{0}"),
    ("POST", "/dead-letters/{}/retry", "operate", "retry_dead_letter", "dead-letters/{0}"),
    ("GET", "/me", "read", "get_me", "me"),
    ("GET", "/workers", "read", "list_workers", "workers"),
    ("GET", "/orchestrators", "read", "list_orchestrators", "orchestrators"),
    ("GET", "/queues", "read", "list_queues", "queues"),
    ("GET", "/stats", "read", "get_stats", "stats"),
    # The audit log has names of keys and addresses of people, so `read` isn't enough.
    ("GET", "/audit", "operate", "list_audit", "audit"),
    ("GET", "/keys", "admin", "list_keys", "keys"),
    ("POST", "/keys", "admin", "create_key", "keys"),
    ("DELETE", "/keys/{}", "admin", "revoke_key", "keys/{0}"),
]

_OUTSIDE: list[tuple[str, str, Needed, str]] = [
    ("GET", "/health/live", OPEN, "live"),
    ("GET", "/health/ready", OPEN, "ready"),
    ("GET", "/openapi.json", OPEN, "openapi"),
    ("GET", "/schema.json", OPEN, "schema"),
    ("GET", "/docs", OPEN, "docs"),
    ("GET", "/", OPEN, "ui"),
    ("GET", "/ui", OPEN, "ui"),
    ("GET", "/ui/{}", OPEN, "ui"),
    # The token in the path is the right to decide one approval.
    ("GET", "/approve/{}", OPEN, "show_approval"),
    ("POST", "/approve/{}", OPEN, "decide_by_link"),
    ("GET", "/health", "read", "health"),
    ("GET", "/v1/health", "read", "health"),
    ("GET", "/metrics", "read", "metrics"),
]

_COMPATIBLE: list[tuple[str, str, Scope, str, str]] = [
    ("POST", "/workflow", "submit", "submit_workflow", "executions"),
    ("POST", "/workflows", "submit", "submit_workflow", "executions"),
    ("POST", "/workflow/trigger/{}", "submit", "trigger_execution", "executions/{0}"),
    ("POST", "/workflow/{}/trigger", "submit", "trigger_execution", "executions/{0}"),
    ("POST", "/workflows/trigger/{}", "submit", "trigger_execution", "executions/{0}"),
    ("POST", "/workflows/{}/trigger", "submit", "trigger_execution", "executions/{0}"),
    ("GET", "/workflow/{}", "read", "get_execution", "executions/{0}"),
    ("GET", "/workflows/{}", "read", "get_execution", "executions/{0}"),
    ("GET", "/workflow/{}/results", "read", "get_results", "executions/{0}"),
    ("GET", "/workflows/{}/results", "read", "get_results", "executions/{0}"),
    ("DELETE", "/workflow/{}", "operate", "cancel_execution", "executions/{0}"),
    ("DELETE", "/workflows/{}", "operate", "cancel_execution", "executions/{0}"),
    ("GET", "/admin/dlq", "read", "list_dead_letters", "dead-letters"),
    ("POST", "/admin/dlq/{}/retry", "operate", "retry_dead_letter", "dead-letters/{0}"),
    ("DELETE", "/admin/dlq/{}", "operate", "drop_dead_letter", "dead-letters/{0}"),
]

_NO_CHANGE = frozenset({"validate_workflow"})


def _rules() -> Iterator[tuple[tuple[str, str], Rule]]:
    for prefix in PREFIXES:
        for method, path, scope, operation, about in _COMPATIBLE:
            yield (method, prefix + path), Rule(scope, operation, about, method not in READING)

    # after the compatible routes, which they replace in /api/v1
    for method, path, scope, operation, about in _API:
        changes = method not in READING and operation not in _NO_CHANGE
        yield (method, BASE + path), Rule(scope, operation, about, changes)

    for method, path, needed, operation in _OUTSIDE:
        yield (method, path), Rule(needed, operation, operation, method not in READING)


TABLE: Mapping[tuple[str, str], Rule] = dict(_rules())
"""The rule of each route, by method and path; the names of parameters are left out."""


class Found(NamedTuple):
    """The route of a request, with its parameters."""

    rule: Rule
    scope: Needed
    """The scope that the request needs: the strictest of all routes that match."""
    params: Mapping[str, str]


class _Route(NamedTuple):
    path: str
    pattern: re.Pattern[str]
    rule: Rule


class Routes:
    """The app's routes, each with its rule."""

    def __init__(self) -> None:
        self._fixed: dict[tuple[str, str], Found] = {}
        self._groups: dict[str, dict[str, list[_Route]]] = {}
        """Routes by method, then by the part of the path before the first parameter.

        A request's path is compared with that part first, which rules out most routes.
        """

    def add(self, method: str, path: str, pattern: re.Pattern[str], rule: Rule) -> None:
        start, parameter, _ = path.partition("{")
        if parameter:
            groups = self._groups.setdefault(method, {})
            groups.setdefault(start, []).append(_Route(path, pattern, rule))
            return

        candidates = [Found(rule, rule.scope, {})]
        earlier = self._fixed.get((method, path))
        if earlier is not None:
            candidates.insert(0, earlier)
        self._fixed[method, path] = _strictest(candidates)

    def close(self) -> Routes:
        """Finish the rules of paths without parameters, which may also match others with some."""
        for (method, path), route in self._fixed.items():
            self._fixed[method, path] = _strictest([route, *self._search(method, path)])
        return self

    def find(self, method: str, path: str) -> Found | None:
        method = "GET" if method == "HEAD" else method
        fixed = self._fixed.get((method, path))
        if fixed is not None:
            return fixed
        candidates = list(self._search(method, path))
        return _strictest(candidates) if candidates else None

    def methods(self, path: str) -> list[str]:
        """The methods of the narrowest route that matches this path, for an answer of 405.

        `/workflows/validate` also matches the route of a workflow with that name, but a caller
        doesn't mean that.
        """
        fixed = sorted(method for method, fixed_path in self._fixed if fixed_path == path)
        if fixed or "\n" in path:
            return fixed

        methods: dict[str, set[str]] = {}
        """Methods by the path of a route that matches."""
        for method, groups in self._groups.items():
            for route in chain.from_iterable(groups.values()):
                if route.pattern.match(path):
                    methods.setdefault(route.path, set()).add(method)
        if not methods:
            return []
        narrowest = max(methods, key=lambda route_path: (_literal_length(route_path), route_path))
        return sorted(methods[narrowest])

    def _search(self, method: str, path: str) -> Iterator[Found]:
        if "\n" in path:
            # `$` also matches before a line end: then a route without parameters could be meant
            return
        for start, routes in self._groups.get(method, {}).items():
            if not path.startswith(start):
                continue
            for route in routes:
                match = route.pattern.match(path)
                if match:
                    yield Found(route.rule, route.rule.scope, match.groupdict())


def _literal_length(path: str) -> int:
    """Characters of a route's path outside of its parameters."""
    return len(re.sub(r"\{[^}]*\}", "", path))


def _strictest(candidates: list[Found]) -> Found:
    """The first candidate, with the strictest scope of all."""
    scopes = [candidate.scope for candidate in candidates]
    return candidates[0]._replace(scope=max(scopes, key=_RANKS.__getitem__))


def check_routes(app: Starlette) -> Routes:
    """The app's routes with their rules. Call it when the app has all its routes.

    Raises `RouteMissing` if one isn't in the table.
    """
    routes = Routes()
    for route in routes_of(app):
        path = getattr(route, "path_format", None)
        pattern: Any = getattr(route, "path_regex", None)
        if path is None or pattern is None:
            raise RouteMissing(f"{route!r} has no path that access.py could have a row for")
        without_names = re.sub(r"\{[^}]*\}", "{}", path)
        for method in sorted((route.methods or {"GET"}) - {"HEAD"}):
            rule = TABLE.get((method, without_names))
            if rule is None:
                raise RouteMissing(
                    f"{method} {path} isn't in the table of api/access.py:"
                    " say there who may call it"
                )
            routes.add(method, path, pattern, rule)
    return routes.close()
