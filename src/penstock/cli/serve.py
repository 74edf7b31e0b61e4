"""`penstock dev` and `penstock serve`: API, orchestrator and worker in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import asyncio

    from penstock.config import Settings

DEV_EPILOG = """Example:

\b
  penstock dev --handlers handlers.py --reload
  curl -s localhost:8000/api/v1/executions?wait=10 -H 'content-type: application/json' \\
       -d '{"definition": {"nodes": [{"id": "a", "handler": "noop"}]}}'"""
SERVE_EPILOG = """Example:

\b
  penstock keys create --scope submit --store sqlite:////var/lib/penstock.db
  penstock serve --host 0.0.0.0 --store sqlite:////var/lib/penstock.db"""


@click.command(
    short_help="Serve everything in this process, for trying things out.", epilog=DEV_EPILOG
)
@click.option("--port", type=int, metavar="N", help="Default: 8000. 0 takes a free one.")
@click.option(
    "--handlers",
    multiple=True,
    metavar="MODULE|FILE.py",
    help="Where your own handlers are; repeatable.",
)
@click.option("--store", metavar="URL", help="Default: sqlite:///penstock.db, in this folder.")
@click.option(
    "--mock", is_flag=True, help="Answer HTTP and LLM calls with stand-ins instead of making them."
)
@click.option("--reload", is_flag=True, help="Start again when a file with handlers changes.")
@click.option("--debug", is_flag=True, help="Log more, and show tracebacks.")
def dev(reload: bool, **options: Any) -> int:  # noqa: FBT001 -- click gives it by name
    """Serve API, orchestrator and worker in this process, on loopback, for trying things out.

    No keys are needed: only programs on this machine can reach it. Unfinished executions go on.
    """
    from penstock.config import Settings

    flags = {"http_private": True, "host": "127.0.0.1", **_flags(options)}
    settings = Settings.load(flags)
    if reload:
        from penstock.cli.reloading import run_reloading

        return run_reloading(settings.handlers)
    return _serve(settings)


@click.command(
    short_help="Serve everything in one process, also for other machines.", epilog=SERVE_EPILOG
)
@click.option(
    "--host", metavar="ADDRESS", help="Default: 127.0.0.1. Anything else needs an API key."
)
@click.option("--port", type=int, metavar="N", help="Default: 8000. 0 takes a free one.")
@click.option(
    "--handlers",
    multiple=True,
    metavar="MODULE|FILE.py",
    help="Where your own handlers are; repeatable.",
)
@click.option("--store", metavar="URL", help="Default: sqlite:///penstock.db, in this folder.")
@click.option(
    "--mock", is_flag=True, help="Answer HTTP and LLM calls with stand-ins instead of making them."
)
@click.option("--debug", is_flag=True, help="Log more, and show tracebacks.")
def serve(**options: Any) -> int:
    """Serve API, orchestrator and worker in one process, also for other machines.

    Settings come from flags, then PENSTOCK_… variables, then penstock.toml.
    """
    from penstock.config import Settings

    flags = {"host": options["host"], **_flags(options)}
    return _serve(Settings.load(flags, application_urls=True))


def _flags(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "port": options["port"],
        "store": options["store"],
        "handlers": options["handlers"] or None,
        "mock_services": options["mock"] or None,
        "log_level": "DEBUG" if options["debug"] else None,
    }


def _serve(settings: Settings) -> int:
    from penstock.cli.roles import run_role
    from penstock.runtime import run_all_in_one

    async def work(stop: asyncio.Event) -> None:
        await run_all_in_one(settings, stop, on_ready=_say_ready)

    return run_role(settings, work)


def _say_ready(address: str) -> None:
    lines = [
        f"Penstock is ready at {address}",
        f"  UI    {address}/ui/",
        f"  API   {address}/api/v1",
        f"  docs  {address}/docs",
        "Ctrl-C stops it.",
    ]
    print("\n".join(lines), flush=True)
