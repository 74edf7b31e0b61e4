"""`penstock cancel`, `pause`, `resume`, `retry`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.cli.execution_ids import find_execution, resolve
from penstock.cli.remote import as_json, ask, decode, print_json, server_options

if TYPE_CHECKING:
    from penstock.client import Client
    from penstock.views.retries import Retried, RetryRun

AN_ID = "0199a1b2-6c3d-7e4f-8a5b-9c0d1e2f3a4b"
RETRY_EPILOG = f"""Examples:

\b
  penstock retry @last --preview
  penstock retry 0199a1b2-6c3d --from letter --wait
  penstock retry {AN_ID} --version latest

Prints the new execution's id. The exit codes are those of `submit`."""


def _control_command(verb: str, description: str) -> click.Command:
    @click.command(verb, help=description, epilog=f"Example:\n\n\b\n  penstock {verb} {AN_ID}")
    @click.argument("execution_ids", metavar="ID…", nargs=-1, required=True)
    @as_json
    @server_options
    def command(execution_ids: tuple[str, ...], **options: Any) -> None:
        items: list[dict[str, str]] = []

        async def request_control(client: Client) -> None:
            # All of them before the first is changed: @last must not move meanwhile.
            resolved = [await resolve(client, text) for text in execution_ids]
            for execution_id in resolved:
                await getattr(client.execution(execution_id), verb)()
                items.append({"execution_id": execution_id, "requested": verb})
                if not options["as_json"]:
                    print(f"{verb} requested: {execution_id}", flush=True)

        try:
            ask(options, request_control)
        finally:
            # Also if one of them was refused: the ones before it have been changed.
            if options["as_json"]:
                print_json({"items": items})

    return command


cancel = _control_command(
    "cancel",
    "Cancel executions. Running handlers are told to stop, and what they return is ignored.",
)
pause = _control_command("pause", "Pause executions: no more nodes start; running nodes go on.")
resume = _control_command("resume", "Resume paused executions.")


@click.command(short_help="Run what didn't complete, in a new execution.", epilog=RETRY_EPILOG)
@click.argument("execution_id", metavar="ID")
@click.option(
    "--from",
    "start",
    metavar="NODE",
    help="Run this node, or this item of a map (each[3]), and all nodes after it again, even if"
    " they completed.",
)
@click.option(
    "--version", default="same", show_default=True, metavar="same|latest|N", help="Of the workflow."
)
@click.option(
    "--items",
    type=click.Choice(("failed", "all")),
    help="Which items of maps that run again. Default: those that failed, and all of the map that"
    " --from names.",
)
@click.option("--preview", is_flag=True, help="Only show which nodes would run, and why.")
@click.option("--wait", is_flag=True, help="Watch it until it has ended.")
@as_json
@server_options
def retry(execution_id: str, **options: Any) -> int:
    """Retry the execution ID: run the nodes that didn't complete, in a new execution.

    The new execution reuses the outputs of the nodes that completed.
    """

    async def start_retry(client: Client) -> int:
        from penstock.views.retries import Retried

        handle = await find_execution(client, execution_id)
        plan = await handle.retry(
            options["start"],
            options["version"],
            items=options["items"],
            preview=options["preview"],
        )
        retried = decode(plan, Retried)
        if options["wait"] and retried.execution_id:
            from penstock.cli.watch import see_through

            new = client.execution(retried.execution_id)
            return await see_through(client, new, options, quiet=options["as_json"])
        if options["as_json"]:
            print_json(plan)
        elif options["preview"]:
            print_preview(retried)
        else:
            print(retried.execution_id)
        return 0

    return ask(options, start_retry)


def _run_row(run: RetryRun) -> list[object]:
    reason = run.reason
    if run.items and run.items.sample:
        others = ", …" if run.items.runs > len(run.items.sample) else ""
        reason += f": {', '.join(run.items.sample)}{others}"
    if run.items and run.items.list_changes:
        reason += f"; {run.items.list_changes}"
    return [run.node_id, reason]


def print_preview(retried: Retried) -> None:
    from penstock.cli.safe_text import counted
    from penstock.cli.tables import show_table

    show_table(["node", "runs because"], [_run_row(run) for run in retried.runs])
    runs = counted(len(retried.runs), "node")
    reused = counted(len(retried.keeps), "output")
    print(f"\n{runs} would run on version {retried.version}; {reused} would be reused.")
