"""Refusals of webhooks: nobody without the secret, nothing too old, no message twice."""

from __future__ import annotations

from scripts.guards.guard import Guard

SIGNATURES = "tests/definition/test_signatures.py"
CONTRACT = "tests/contract/test_hooks.py"

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
]
