"""`penstock api`, `orchestrator` and `worker`: one role per process, in any number."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    import asyncio

    from penstock.config import Settings

Command = TypeVar("Command", bound=Callable[..., Any])
READY = "is ready"
"""`penstock up` waits for a role to print this."""

API_EPILOG = """Example:

\b
  export PENSTOCK_STORE=redis://redis:6379/0 PENSTOCK_DATABASE=postgresql://penstock@db/penstock
  penstock keys create --scope submit
  penstock api --host 0.0.0.0 --port 8000"""
ORCHESTRATOR_EPILOG = """Example:

\b
  export PENSTOCK_STORE=redis://redis:6379/0 PENSTOCK_DATABASE=postgresql://penstock@db/penstock
  penstock orchestrator --health-port 9000"""
WORKER_EPILOG = """Examples:

\b
  export PENSTOCK_STORE=redis://redis:6379/0 PENSTOCK_DATABASE=postgresql://penstock@db/penstock
  penstock worker --handlers app.tasks --concurrency 64
  penstock worker --handlers app.tasks --queues gpu --concurrency 1"""


def store_options(command: Command) -> Command:
    options = (
        click.option(
            "--store", metavar="URL", help="redis://…; default: PENSTOCK_STORE, or REDIS_URL."
        ),
        click.option(
            "--database",
            metavar="URL",
            help="postgresql://…; default: PENSTOCK_DATABASE, or DATABASE_URL.",
        ),
        click.option("--debug", is_flag=True, help="Log more, and show tracebacks."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _health_options(command: Command) -> Command:
    options = (
        click.option(
            "--health-port",
            type=click.IntRange(0, 65535),
            metavar="N",
            help="Serve /health/live, /health/ready and /metrics on this port. 0 takes a free one.",
        ),
        click.option(
            "--health-host",
            default="127.0.0.1",
            show_default=True,
            metavar="ADDRESS",
            help="The address for --health-port, which needs no API key.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


_handlers = click.option(
    "--handlers",
    multiple=True,
    metavar="MODULE|FILE.py",
    help="Where your own handlers are; repeatable.",
)


@click.command(epilog=API_EPILOG)
@click.option(
    "--host", metavar="ADDRESS", help="Default: 127.0.0.1. Anything else needs an API key."
)
@click.option("--port", type=int, metavar="N", help="Default: 8000. 0 takes a free one.")
@_handlers
@store_options
def api(**options: Any) -> int:
    """Serve the HTTP API. Orchestrators and workers run in processes of their own.

    Handlers need not be installed here: workers report which ones they have.
    """
    settings = settings_of(options, host=options["host"], port=options["port"])
    from penstock.runtime import run_api

    async def work(stop: asyncio.Event) -> None:
        await run_api(settings, stop, on_ready=_say_ready)

    return run_role(settings, work)


@click.command(epilog=ORCHESTRATOR_EPILOG)
@_handlers
@_health_options
@store_options
def orchestrator(**options: Any) -> int:
    """Run an orchestrator, which decides which nodes start.

    Orchestrators share the partitions; one that stops hands its partitions over at once.

    It runs no handlers. It learns their retries, timeouts and queues from the workers; --handlers
    is only needed until a worker that has them has started once.
    """
    settings = settings_of(options)
    from penstock.runtime import run_orchestrator

    async def work(stop: asyncio.Event) -> None:
        await run_orchestrator(settings, stop, health=_health(options), on_ready=_say_ready)

    return run_role(settings, work)


@click.command(epilog=WORKER_EPILOG)
@_handlers
@click.option(
    "--queues",
    multiple=True,
    metavar="NAME",
    help="Serve these queues instead of those of its handlers; repeatable.",
)
@click.option(
    "--concurrency", type=int, metavar="N", help="How many attempts run at once. Default: 256."
)
@click.option(
    "--mock", is_flag=True, help="Answer HTTP and LLM calls with stand-ins instead of making them."
)
@_health_options
@store_options
def worker(**options: Any) -> int:
    """Run a worker, which runs handlers.

    On SIGTERM or Ctrl-C it takes no more tasks, finishes running ones within
    PENSTOCK_SHUTDOWN_GRACE_SECONDS (10) and hands back the rest. A second signal stops it at once.
    """
    queues: list[str] = []
    for names in options["queues"]:
        queues += [name for name in names.split(",") if name]
    settings = settings_of(
        options,
        worker_concurrency=options["concurrency"],
        mock_services=options["mock"] or None,
        queues=tuple(queues) or None,
    )
    from penstock.runtime import run_worker

    async def work(stop: asyncio.Event) -> None:
        await run_worker(
            settings, None, settings.queues, stop, health=_health(options), on_ready=_say_ready
        )

    return run_role(settings, work)


def settings_of(options: dict[str, Any], **extra_flags: Any) -> Settings:
    """The settings, checked before anything is imported or opened."""
    from penstock.config import Settings
    from penstock.runtime.opening import check_shared

    flags = {
        "store": options["store"],
        "database": options["database"],
        "handlers": options["handlers"] or None,
        "log_level": "DEBUG" if options["debug"] else None,
        **extra_flags,
    }
    settings = Settings.load(flags, application_urls=True)
    check_shared(settings)
    return settings


def run_role(settings: Settings, work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    from penstock.cli.interrupt import Interrupt
    from penstock.cli.reading import import_handlers
    from penstock.runtime import run_loop
    from penstock.telemetry.logs import configure_logging
    from penstock.telemetry.traces import configure_tracing

    configure_logging(settings)
    configure_tracing(settings)
    import_handlers(settings.handlers)

    async def main() -> int:
        with Interrupt(lambda: None) as interrupt:
            await work(interrupt.requested)
        print("stopped", file=sys.stderr)
        return 0

    return run_loop(main())


def _health(options: dict[str, Any]) -> tuple[str, int] | None:
    if options["health_port"] is None:
        return None
    return options["health_host"], options["health_port"]


def _say_ready(name: str) -> None:
    print(f"{name} {READY}; Ctrl-C stops it", flush=True)
