"""`penstock hooks`: webhooks, and what they were sent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.command_groups import CommandGroup
from penstock.cli.remote import (
    as_json,
    ask,
    decode,
    gather,
    list_limit,
    print_json,
    server_options,
    short_time,
)

if TYPE_CHECKING:
    from penstock.client import Client
    from penstock.views.hooks import DeliveryItem, HookItem

PUT_EPILOG = """Example:

\b
  penstock hooks put shop shop.json

\b
  {"start": {"workflow": "paid@stable", "input": {"event": "{{ body }}"}},
   "verify": {"scheme": "stripe", "secret": "STRIPE_WEBHOOK"},
   "filter": "body.type == 'invoice.paid'", "idempotency": "{{ body.id }}"}

The service that takes the requests finds the secret in PENSTOCK_SECRET_STRIPE_WEBHOOK."""


@click.group(
    cls=CommandGroup,
    short_help="Webhooks, and what they were sent.",
    epilog="""Examples:

\b
  penstock hooks put shop shop.json
  penstock hooks deliveries shop""",
)
def hooks() -> None:
    """Webhooks: addresses whose signed requests start or signal workflows."""


@hooks.command("list", epilog="Example:\n\n\b\n  penstock hooks list --json | jq '.items[].path'")
@as_json
@server_options
def list_hooks(**options: Any) -> None:
    """List the webhooks, by id."""

    async def read(client: Client) -> list[dict[str, Any]]:
        items, _ = await gather(client.hooks())
        return items

    items = ask(options, read)
    if options["as_json"]:
        print_json({"items": items})
        return
    if not items:
        print("No webhooks.", file=sys.stderr)
        return
    from penstock.cli.tables import show_table
    from penstock.views.hooks import HookItem

    rows = [_hook_row(decode(item, HookItem)) for item in items]
    show_table(["id", "path", "starts", "signals", "signed", "updated"], rows, whole=("path",))


def _hook_row(hook: HookItem) -> list[object]:
    document = hook.document
    verify = document["verify"]
    return [
        hook.id,
        hook.path,
        document.get("start", {}).get("workflow", ""),
        document.get("signal", {}).get("name", ""),
        verify if isinstance(verify, str) else verify["scheme"],
        short_time(hook.updated_at),
    ]


@hooks.command("show", epilog="Example:\n\n\b\n  penstock hooks show shop > shop.json")
@click.argument("hook_id", metavar="ID")
@as_json
@server_options
def show(hook_id: str, **options: Any) -> None:
    """Print the document of the webhook ID; with --json, also its path and its times."""

    async def read(client: Client) -> dict[str, Any]:
        return await client.hook(hook_id)

    hook = ask(options, read)
    print_json(hook if options["as_json"] else hook["document"])


@hooks.command("put", epilog=PUT_EPILOG)
@click.argument("hook_id", metavar="ID")
@click.argument("file", metavar="FILE")
@as_json
@server_options
def put(hook_id: str, file: str, **options: Any) -> None:
    """Store the webhook ID as FILE (- for standard input) says, and print its path.

    The API key needs the scope operate.
    """
    from penstock.cli.reading import Refused, read_option

    document = read_option(f"@{file}", "FILE")
    if not isinstance(document, dict):
        raise Refused(f"{file}: a webhook is an object, as `penstock hooks put --help` shows it")

    async def store(client: Client) -> dict[str, Any]:
        return await client.put_hook(hook_id, document)

    stored = ask(options, store)
    if options["as_json"]:
        print_json(stored)
    else:
        print(stored["path"])


@hooks.command("delete", epilog="Example:\n\n\b\n  penstock hooks delete shop")
@click.argument("hook_id", metavar="ID")
@as_json
@server_options
def delete(hook_id: str, **options: Any) -> None:
    """Delete the webhook ID with its deliveries."""

    async def remove(client: Client) -> None:
        await client.delete_hook(hook_id)

    ask(options, remove)
    if options["as_json"]:
        print_json({"id": hook_id, "deleted": True})
    else:
        print(f"deleted {hook_id}")


@hooks.command("deliveries", epilog="Example:\n\n\b\n  penstock hooks deliveries shop --limit 10")
@click.argument("hook_id", metavar="ID")
@list_limit
@as_json
@server_options
def deliveries(hook_id: str, **options: Any) -> None:
    """List what the webhook ID was sent, the newest first.

    Requests whose signature was wrong aren't listed; the log of the service has them.
    """

    async def read(client: Client) -> tuple[list[dict[str, Any]], bool]:
        listed = client.deliveries(hook_id, limit=options["limit"] + 1)
        return await gather(listed, options["limit"])

    items, has_more = ask(options, read)
    if options["as_json"]:
        print_json({"items": items})
        return
    if not items:
        print("No deliveries.", file=sys.stderr)
        return
    from penstock.cli.tables import show_table
    from penstock.views.hooks import DeliveryItem

    rows = [_delivery_row(decode(item, DeliveryItem)) for item in items]
    columns = ["id", "at", "status", "outcome", "execution", "detail"]
    show_table(columns, rows, whole=("id", "execution"))
    if has_more:
        print("There are more; --limit shows them.", file=sys.stderr)


def _delivery_row(delivery: DeliveryItem) -> list[object]:
    return [
        delivery.id,
        short_time(delivery.at),
        delivery.status,
        delivery.outcome,
        delivery.execution_id or "",
        delivery.detail,
    ]


@hooks.command("redeliver", epilog="Example:\n\n\b\n  penstock hooks redeliver shop 17")
@click.argument("hook_id", metavar="ID")
@click.argument("delivery_id", metavar="DELIVERY", type=click.IntRange(min=1))
@as_json
@server_options
def redeliver(hook_id: str, delivery_id: int, **options: Any) -> None:
    """Handle the request DELIVERY to the webhook ID again.

    That is possible for a day. What the request started then is started again.
    """

    async def send(client: Client) -> dict[str, Any]:
        return await client.redeliver(hook_id, delivery_id)

    answer = ask(options, send)
    if options["as_json"]:
        print_json(answer)
    else:
        print(answer.get("execution_id") or "nothing was started")


@hooks.command(
    "test",
    epilog="""Example:

\b
  penstock hooks test shop --body @paid.json --header x-event=paid""",
)
@click.argument("hook_id", metavar="ID")
@click.option("--body", metavar="JSON|@FILE", help="The body of the request. Default: null.")
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="Repeatable.")
@click.option("--query", "query", metavar="NAME=VALUE", multiple=True, help="Repeatable.")
@as_json
@server_options
def test(hook_id: str, **options: Any) -> None:
    """Print what the webhook ID would do with a request. Nothing is done.

    Exit codes: 0 it would start or signal something, or skip it; 1 it can't use the request.
    """
    from penstock.cli.reading import read_option

    body = read_option(options["body"], "--body")
    headers = _pairs(options["headers"], "--header")
    query = _pairs(options["query"], "--query")

    async def send(client: Client) -> dict[str, Any]:
        return await client.test_hook(hook_id, body, headers=headers, query=query)

    trial = ask(options, send)
    if options["as_json"]:
        print_json(trial)
    elif trial["outcome"] in ("failed", "skipped"):
        print(f"{trial['outcome']}: {trial['detail']}")
    else:
        shown = {key: trial[key] for key in ("input", "labels", "correlation", "payload")}
        print(f"would be {trial['outcome']}, with")
        print_json({key: value for key, value in shown.items() if value not in (None, {})})
    if trial["outcome"] == "failed":
        sys.exit(1)


def _pairs(texts: tuple[str, ...], flag: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise click.BadParameter("write NAME=VALUE", param_hint=flag)
        pairs[name] = value
    return pairs
