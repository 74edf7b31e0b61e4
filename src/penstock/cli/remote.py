"""What all commands that talk to a server share: options, a client, and printing.

Those that only look can read the file of a store instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from penstock.client import Client

DEFAULT_URL = "http://127.0.0.1:8000"
WAIT_SECONDS = 60.0
"""How long a command that waits for an execution tries to reach an absent server."""

Answer = TypeVar("Answer")
View = TypeVar("View")
Command = TypeVar("Command", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")

list_limit = click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most."
)


def server_options(command: Command) -> Command:
    options = (
        click.option(
            "--url",
            envvar="PENSTOCK_URL",
            default=DEFAULT_URL,
            metavar="URL",
            help=f"The server. Default: PENSTOCK_URL, or {DEFAULT_URL}.",
        ),
        click.option(
            "--key",
            envvar="PENSTOCK_API_KEY",
            metavar="KEY",
            help="An API key. PENSTOCK_API_KEY is safer: other users can see command lines.",
        ),
        click.option("--debug", is_flag=True, help="Show tracebacks."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def reading_options(command: Command) -> Command:
    """Add the options of a command that only looks: at a server, or at the file of a store."""
    option = click.option(
        "--store",
        "read_store",  # other commands have a --store that means something else
        metavar="URL",
        help="Read sqlite:///FILE instead of asking a server, also while it is in use.",
    )
    return option(server_options(command))


def ask(
    options: Mapping[str, Any], work: Callable[[Client], Coroutine[Any, Any, Answer]]
) -> Answer:
    """Call `work` with a client. An absent server is reported at once, without retries.

    With `--store`, it is called with a reader of the store, which has the same calls.
    """
    if options.get("read_store") is not None:
        return _ask_store(options["read_store"], work)
    from penstock.client import Client

    async def asking() -> Answer:
        async with Client(options["url"], options["key"], retry_seconds=0) as client:
            return await work(client)

    return asyncio.run(asking())


def _ask_store(store: str, work: Callable[[Client], Coroutine[Any, Any, Answer]]) -> Answer:
    source = click.get_current_context().get_parameter_source("url")
    if source is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("use either --url or --store")
    from penstock.config import Settings
    from penstock.runtime import StoreReader

    settings = Settings.load()

    async def asking() -> Answer:
        async with StoreReader(store, settings) as reader:
            return await work(cast("Client", reader))

    return asyncio.run(asking())


async def gather(
    items: AsyncIterable[dict[str, Any]], limit: int | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """At most `limit` items, and whether there are more."""
    gathered: list[dict[str, Any]] = []
    async for item in items:
        if limit is not None and len(gathered) == limit:
            return gathered, True
        gathered.append(item)
    return gathered, False


def decode(answer: Any, view: type[View]) -> View:
    """An answer of a server as the view that it was made from."""
    import msgspec

    return msgspec.convert(answer, view)


def print_json(value: Any) -> None:
    from penstock.cli.safe_text import json_text

    print(json_text(value))


def short_time(at: str | None) -> str:
    """A time to the second."""
    return "" if at is None else at[:19] + "Z"


def seconds_between(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def labels_text(labels: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in labels.items())
