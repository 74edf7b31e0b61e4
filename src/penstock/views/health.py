"""The health of a service, and the checks that it consists of."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from penstock.views.fleet import UntakenTasks


class Health(msgspec.Struct):
    status: str


class Check(msgspec.Struct, kw_only=True):
    """A check of one part; `detail` says what is wrong with it."""

    ok: bool
    count: int | UnsetType = UNSET
    position: int | list[int] | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    untaken: list[UntakenTasks] | UnsetType = UNSET


class HealthReport(msgspec.Struct, kw_only=True):
    """`status` is `ok`, `degraded` or `unavailable`."""

    status: str
    version: str
    time: str
    reasons: list[str]
    checks: dict[str, Check]
    # for clients of other implementations
    healthy: bool
    ok: bool
