"""Refusals of the API, the service behind it, and the workers."""

from __future__ import annotations

from scripts.guards.guard import Guard

GUARDS = [
    Guard(
        "tasks of a fetch whose answer was lost are found", "worker/runtime.py",
        "self._is_cut_off = self._is_unsure = True", "self._is_cut_off = True",
        "tests/worker/test_strays.py",
    ),
    Guard(
        "a private address is refused", "worker/handlers/addresses.py",
        "if not self._opened(what, address, meaning, host):", "if False:",
        "tests/worker/test_addresses.py",
    ),
    Guard(
        "a metadata address is refused whatever the settings say", "worker/handlers/addresses.py",
        'if what == "metadata":', "if False:",
        "tests/worker/test_addresses.py",
    ),
    Guard(
        "one retry per execution", "service/retries.py",
        "        await self._check_first(execution_id)\n        await self._add_unrecorded",
        "        await self._add_unrecorded",
        "tests/service/test_retries.py",
    ),
    Guard(
        "two retries at once make one execution", "service/retries.py",
        "Intent(record, execution_id, request,", "Intent(record, None, request,",
        "tests/service/test_retries.py",
    ),
    Guard(
        "what comes after a node that runs again runs again", "service/retry_plan.py",
        " or _after(again)", "",
        "tests/service/test_retry_plan.py",
    ),
    Guard(
        "a branch before a kept node stays not taken", "service/retry_plan.py",
        "run = untaken.get(node.address) or stored", "run = stored",
        "tests/service/test_retry_plan.py",
    ),
    Guard(
        "a stranger is refused", "api/auth.py",
        "        if not caller.scopes and needed(scope, found) != OPEN:", "        if False:",
        "tests/api/test_access.py",
    ),
    Guard(
        "a key does what its scope allows", "api/auth.py",
        "            refusal = _forbidden(scope)\n", "            refusal = None\n",
        "tests/api/test_access.py",
    ),
    Guard(
        "a foreign page can't drive a local service", "api/auth.py",
        "        if _comes_from_elsewhere(scope):", "        if False:",
        "tests/api/test_access.py",
    ),
    Guard(
        "on loopback a key is needed once there is one", "api/auth.py",
        "return not _was_forwarded(scope) and not await self._keys.exist()", "return not _was_forwarded(scope)",
        "tests/api/test_access.py",
    ),
    Guard(
        "on loopback what came through a proxy needs a key", "api/auth.py",
        "return not _was_forwarded(scope) and not", "return not",
        "tests/api/test_access.py",
    ),
    Guard(
        "a page on another port is foreign", "api/auth.py",
        '    if any(not _is_own_origin(origin, host) for origin in _headers(scope, b"origin")):\n        return True\n',
        "", "tests/api/test_access.py",
    ),
    Guard(
        "a head that is too large is refused", "api/http_protocol.py",
        "        if self._unparsed_bytes > self.limits.head_bytes_max:", "        if False:",
        "tests/api/test_http_protocol.py",
    ),
    Guard(
        "a head that comes too late is refused", "api/http_protocol.py",
        "self._timer = self.loop.call_later(self.limits.head_seconds, self._head_is_late)", "pass",
        "tests/api/test_http_protocol.py",
    ),
    Guard(
        "half-sent requests make room", "api/http_protocol.py",
        "if len(self.connections) > self.limits.connections_max:", "if False:",
        "tests/api/test_http_protocol.py",
    ),
    Guard(
        "a document that is started doesn't take over its name", "service/submissions.py",
        "named=start_request.named", "named=True",
        "tests/api/test_executions.py",
    ),
    Guard(
        "a batch counts as its items", "api/rate_limit.py",
        "        await more(items - 1)\n", "        return\n",
        "tests/api/test_rate_limit.py",
    ),
    Guard(
        "a revoked key's streams end", "api/events.py",
        "                stop.set()\n", "",
        "tests/api/test_events.py",
    ),
    Guard(
        "a name that was made to point here is refused", "api/auth.py",
        "if len(hosts) != 1 or not _LOCAL_HOST.fullmatch(hosts[0]):", "if False:",
        "tests/api/test_access.py",
    ),
    Guard(
        "a route that nobody gave a scope stops the start", "api/access.py",
        "            if rule is None:\n                raise RouteMissing",
        "            if rule is None:\n                continue\n                raise RouteMissing",
        "tests/api/test_access.py",
    ),
    Guard(
        "a revoked key is no key", "service/keys.py",
        "key is not None and key.revoked_at is None else None", "key is not None else None",
        "tests/api/test_keys.py",
    ),
    Guard(
        "what is over the rate limit is refused", "api/rate_limit.py",
        "app = self._app if let_in else _refusal(limit, kind, seconds)", "app = self._app",
        "tests/api/test_rate_limit.py",
    ),
    Guard(
        "a body that is too large is not read", "api/bodies.py",
        "            if size > self._most:\n                self._too_large()",
        "            if False:\n                self._too_large()",
        "tests/api/test_documents.py",
    ),
]  # fmt: skip
