"""The middleware that a request passes: authentication, rate limit, audit log, access."""

from __future__ import annotations

from starlette.applications import Starlette

from penstock.api.access import check_routes
from penstock.api.audit_log import AuditLog, AuditMiddleware
from penstock.api.auth import Access, Authorize, Identify
from penstock.api.failed_logins import FailedLogins
from penstock.api.rate_limit import RateLimitMiddleware, RateLimitStorage, limits_of
from penstock.api.security_headers import SecurityHeadersMiddleware
from penstock.config import Settings
from penstock.service.keys import Keys


def install_middleware(  # noqa: PLR0913 -- what the middleware is made of
    app: Starlette,
    *,
    settings: Settings,
    keys: Keys,
    audit_log: AuditLog,
    rate_limit_storage: RateLimitStorage | None = None,
    authorize: Authorize | None = None,
) -> None:
    """Add the middleware. Call it when the app has all its routes: later ones can't be reached.

    Without a storage for the rate limit, this process counts by itself. With `authorize`, another
    app decides who may do what.
    """
    routes = check_routes(app)
    changes, reads = limits_of(settings)
    # A request passes the middleware that is added last first.
    app.add_middleware(
        Access,
        routes=routes,
        settings=settings,
        failed_logins=FailedLogins(audit_log),
        has_sessions=authorize is not None,
    )
    app.add_middleware(AuditMiddleware, audit_log=audit_log)
    app.add_middleware(
        RateLimitMiddleware, changes=changes, reads=reads, storage=rate_limit_storage
    )
    app.add_middleware(Identify, routes=routes, keys=keys, settings=settings, authorize=authorize)
    app.add_middleware(SecurityHeadersMiddleware)
