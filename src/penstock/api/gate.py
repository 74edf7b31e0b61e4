"""What a request passes on its way to a route: who calls, how often, the trail of it, and whether it may."""

from __future__ import annotations

from fastapi import FastAPI

from penstock.api.access import check_routes
from penstock.api.auditing import Audit, Trail
from penstock.api.auth import Access, Identify
from penstock.api.failed_logins import FailedLogins
from penstock.api.limits import RateLimit, Storage, limits_of
from penstock.api.security_headers import SecurityHeaders
from penstock.config import Settings
from penstock.service.keys import Keys


def protect(
    app: FastAPI, *, settings: Settings, keys: Keys, trail: Trail, windows: Storage | None = None
) -> None:
    """To be called when the app has all its routes: one that is added later can't be reached.

    `windows` are those of the rate limit; without, this process has its own.
    """
    routes = check_routes(app)
    changes, reads = limits_of(settings)
    # What is added last is passed first.
    app.add_middleware(Access, routes=routes, settings=settings, failed_logins=FailedLogins(trail))
    app.add_middleware(Audit, trail=trail)
    app.add_middleware(RateLimit, changes=changes, reads=reads, windows=windows)
    app.add_middleware(Identify, routes=routes, keys=keys, settings=settings)
    app.add_middleware(SecurityHeaders)
