"""The middleware that a request passes: who calls, how often, the audit log, whether it may."""

from __future__ import annotations

from fastapi import FastAPI

from penstock.api.access import check_routes
from penstock.api.audit_log import AuditLog, AuditMiddleware
from penstock.api.auth import Access, Identify
from penstock.api.failed_logins import FailedLogins
from penstock.api.rate_limit import RateLimitMiddleware, RateLimitStorage, limits_of
from penstock.api.security_headers import SecurityHeadersMiddleware
from penstock.config import Settings
from penstock.service.keys import Keys


def install_middleware(
    app: FastAPI,
    *,
    settings: Settings,
    keys: Keys,
    audit_log: AuditLog,
    rate_limit_storage: RateLimitStorage | None = None,
) -> None:
    """Add the middleware.

    To be called when the app has all its routes: one that is added later can't be reached.

    Without a storage for the rate limit this process counts for itself.
    """
    routes = check_routes(app)
    changes, reads = limits_of(settings)
    # What is added last is passed first.
    app.add_middleware(
        Access, routes=routes, settings=settings, failed_logins=FailedLogins(audit_log)
    )
    app.add_middleware(AuditMiddleware, audit_log=audit_log)
    app.add_middleware(
        RateLimitMiddleware, changes=changes, reads=reads, storage=rate_limit_storage
    )
    app.add_middleware(Identify, routes=routes, keys=keys, settings=settings)
    app.add_middleware(SecurityHeadersMiddleware)
