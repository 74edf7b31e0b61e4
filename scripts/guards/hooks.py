"""Refusals of webhooks: nobody without the secret, nothing too old, no message twice."""

from __future__ import annotations

from scripts.guards.guard import Guard

SIGNATURES = "tests/definition/test_signatures.py"
CONTRACT = "tests/contract/test_hooks.py"
SERVICE = "tests/service/test_hooks.py"
API = "tests/api/test_hooks.py"

GUARDS = [
    Guard(
        "a request that no secret has signed is refused",
        "definition/signatures.py",
        at="check_signature",
        pattern="not is_signed",
        without="False",
        test=SIGNATURES,
    ),
    Guard(
        "a request that was signed long ago is refused",
        "definition/signatures.py",
        at="check_signature",
        pattern="abs(now - timestamp) > verification.tolerance_seconds",
        without="False",
        test=SIGNATURES,
    ),
    Guard(
        "an empty secret verifies nothing",
        "definition/signatures.py",
        at="_wanted",
        pattern="not secret",
        without="False",
        test=SIGNATURES,
    ),
    Guard(
        "a time that isn't signed is no time",
        "definition/signatures.py",
        at="_check_hmac",
        pattern="(TIMESTAMP in placeholders) != (timestamp_header is not None)",
        without="False",
        test=SIGNATURES,
    ),
    Guard(
        "a message that was claimed isn't claimed again (memory)",
        "stores/memory/hooks.py",
        at="MemoryHooks.claim",
        pattern="not is_free(...)",
        without="False",
        test=f"{CONTRACT} -k memory",
    ),
    Guard(
        "a message that was claimed isn't claimed again (SQLite)",
        "stores/sqlite/hooks.py",
        at="_claim",
        pattern="not is_free(...)",
        without="False",
        test=f"{CONTRACT} -k sqlite",
    ),
    Guard(
        "only deliveries without a hook are strays (PostgreSQL)",
        "stores/postgres/hooks.sql",
        at="forget_strays",
        pattern="NOT EXISTS (...)",
        without="true",
        test=f'{CONTRACT} -k "redis and not cluster"',
    ),
    Guard(
        "a hook without a signature is only for this machine",
        "service/hooks.py",
        at="Hooks.accept",
        pattern="self._is_local and is_from_here",
        without="True",
        test=SERVICE,
    ),
    Guard(
        "a hook without a signature can't be stored where others reach it",
        "service/hooks.py",
        at="Hooks._check_secrets",
        pattern="verify == 'none' and not self._is_local",
        without="False",
        test=SERVICE,
    ),
    Guard(
        "a message that was handled isn't handled again",
        "service/hooks.py",
        at="Hooks._claim",
        pattern="if claim.is_mine: ...",
        without="return _Claimed(message, now)",
        test=SERVICE,
    ),
    Guard(
        "an execution that a hook starts has the message as its idempotency key",
        "service/hooks.py",
        at="Hooks._start",
        pattern="None if claimed.message is None else claimed.message.hex()",
        without="None",
        test=SERVICE,
    ),
    Guard(
        "headers with credentials are left out of what a hook sees",
        "service/hooks.py",
        at="_visible_headers",
        pattern="name not in hidden",
        without="True",
        test=API,
    ),
    Guard(
        "a body is read only up to its limit",
        "api/hooks.py",
        at="_body",
        pattern="size > BODY_BYTES_MAX",
        without="False",
        test=API,
    ),
    Guard(
        "a page of another site can't send to a hook without a signature",
        "api/hooks.py",
        at="_check_type",
        pattern="media_type != JSON_TYPE",
        without="False",
        test=API,
    ),
    Guard(
        "a hook has a rate limit",
        "api/hooks.py",
        at="_enter",
        pattern="not entered.let_in",
        without="False",
        test=API,
    ),
]
