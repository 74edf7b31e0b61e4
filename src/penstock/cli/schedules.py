"""`penstock schedules`."""

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
    from penstock.views.schedules import ScheduleView, UpcomingSlot

EPILOG = """Examples:

\b
  penstock schedules put nightly.json
  penstock schedules list
  penstock schedules next nightly
  penstock schedules slots nightly
  penstock schedules pause nightly --reason holidays"""
OUTCOMES = ["started", "skipped", "late", "queued", "failed_to_start"]
"""The same as in schedules/model.py, which the help need not import."""


@click.group(
    cls=CommandGroup, short_help="Start workflows by the clock, and see when.", epilog=EPILOG
)
def schedules() -> None:
    """Store, look at and control schedules, which start executions of stored workflows.

    A slot is a moment at which a schedule starts.
    """


@schedules.command(
    "put",
    epilog="Examples:\n\n\b\n  penstock schedules put nightly.json\n"
    "  penstock schedules put - --name weekly < nightly.json",
)
@click.argument("file", metavar="FILE")
@click.option("--name", metavar="NAME", help="Default: the name in FILE.")
@as_json
@server_options
def put_schedule(file: str, *, name: str | None, **options: Any) -> None:
    """Store the schedule in FILE (- for standard input), also in place of the one of its name.

    A changed time counts from now on; what is due already still starts.
    """
    from penstock.cli import reading
    from penstock.cli.safe_text import one_line
    from penstock.config import Settings
    from penstock.runtime.document_files import document_limits
    from penstock.views.schedules import PutScheduleView

    document, _ = reading.read_object(file, document_limits(Settings.load()))
    if name is not None:
        document = {**document, "name": name}
    known_name = document.get("name")
    if not isinstance(known_name, str) or not known_name:
        raise click.UsageError('the schedule has no name: add "name" to it, or --name NAME')

    answer = ask(options, lambda client: client.put_schedule(known_name, document))
    if options["as_json"]:
        print_json(answer)
        return
    stored = decode(answer, PutScheduleView)
    what = "created" if stored.created else "changed"
    print(one_line(f"{what} {stored.schedule.name}, next {_next_text(stored.schedule)}"))


@schedules.command("list", epilog="Example:\n\n\b\n  penstock schedules list --json")
@list_limit
@as_json
@server_options
def list_schedules(**options: Any) -> None:
    """List schedules by name, with their next slots."""
    from penstock.cli.tables import show_table
    from penstock.views.schedules import ScheduleView

    async def read(client: Client) -> tuple[list[dict[str, Any]], bool]:
        return await gather(client.schedules(limit=options["limit"] + 1), options["limit"])

    items, has_more = ask(options, read)
    if options["as_json"]:
        print_json({"items": items})
        return
    if not items:
        print("No schedules.", file=sys.stderr)
        return
    rows: list[list[object]] = []
    for item in items:
        schedule = decode(item, ScheduleView)
        rows.append(
            [
                schedule.name,
                schedule.workflow,
                _when_text(schedule),
                _next_text(schedule),
                schedule.overlap,
            ]
        )
    show_table(["name", "workflow", "when", "next", "overlap"], rows)
    if has_more:
        print("There are more; --limit shows them.", file=sys.stderr)


@schedules.command("show", epilog="Example:\n\n\b\n  penstock schedules show nightly")
@click.argument("name", metavar="NAME")
@as_json
@server_options
def show_schedule(name: str, **options: Any) -> None:
    """Show the schedule NAME."""
    answer = ask(options, lambda client: client.schedule(name))
    if options["as_json"]:
        print_json(answer)
        return
    _print_schedule(answer)


@schedules.command("next", epilog="Example:\n\n\b\n  penstock schedules next nightly --count 3")
@click.argument("name", metavar="NAME")
@click.option(
    "--count", type=click.IntRange(1, 100), default=10, show_default=True, help="How many."
)
@as_json
@server_options
def next_slots(name: str, *, count: int, **options: Any) -> None:
    """Show when the schedule NAME starts next, by clocks in its zone and in UTC."""
    items = ask(options, lambda client: client.next_slots(name, count))
    if options["as_json"]:
        print_json({"items": items})
        return
    _print_upcoming(items)


@schedules.command("explain", epilog="Example:\n\n\b\n  penstock schedules explain nightly")
@click.argument("name", metavar="NAME")
@as_json
@server_options
def explain_schedule(name: str, **options: Any) -> None:
    """Say what the schedule NAME waits for, what became of its last slots, and what comes next."""
    from penstock.cli.safe_text import one_line

    async def read(client: Client) -> dict[str, Any]:
        slots, _ = await gather(client.slots(name, limit=5))
        return {
            "schedule": await client.schedule(name),
            "slots": slots,
            "next": await client.next_slots(name, 5),
        }

    answer = ask(options, read)
    if options["as_json"]:
        print_json(answer)
        return
    schedule = _print_schedule(answer["schedule"])
    if schedule.paused:
        print(one_line(f"It starts nothing: it is paused ({schedule.paused_reason})."))
    elif schedule.next is None:
        print("It starts nothing any more: it is over.")
    if schedule.queued:
        print(f"{schedule.queued} slots wait for an execution to end.")
    print("\nLast slots:")
    _print_slots(answer["slots"])
    print("\nNext slots:")
    _print_upcoming(answer["next"])


@schedules.command(
    "slots", epilog="Example:\n\n\b\n  penstock schedules slots nightly --outcome skipped"
)
@click.argument("name", metavar="NAME")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only slots with this outcome.")
@list_limit
@as_json
@server_options
def list_slots(name: str, **options: Any) -> None:
    """List what has become of the slots of the schedule NAME, the newest first."""

    async def read(client: Client) -> tuple[list[dict[str, Any]], bool]:
        slots = client.slots(name, outcome=options["outcome"], limit=options["limit"] + 1)
        return await gather(slots, options["limit"])

    items, has_more = ask(options, read)
    if options["as_json"]:
        print_json({"items": items})
        return
    _print_slots(items)
    if has_more:
        print("There are more; --limit shows them.", file=sys.stderr)


@schedules.command(
    "pause", epilog="Example:\n\n\b\n  penstock schedules pause nightly --reason holidays"
)
@click.argument("name", metavar="NAME")
@click.option("--reason", metavar="TEXT", help="Why, for whoever looks at it.")
@as_json
@server_options
def pause_schedule(name: str, *, reason: str | None, **options: Any) -> None:
    """Start no more slots of the schedule NAME; what runs goes on."""
    _report(
        options, "paused", name, ask(options, lambda client: client.pause_schedule(name, reason))
    )


@schedules.command("resume", epilog="Example:\n\n\b\n  penstock schedules resume nightly")
@click.argument("name", metavar="NAME")
@as_json
@server_options
def resume_schedule(name: str, **options: Any) -> None:
    """Start slots of the schedule NAME again; missed ones are caught up as it says."""
    _report(options, "resumed", name, ask(options, lambda client: client.resume_schedule(name)))


@schedules.command("trigger", epilog="Example:\n\n\b\n  penstock schedules trigger nightly")
@click.argument("name", metavar="NAME")
@as_json
@server_options
def trigger_schedule(name: str, **options: Any) -> None:
    """Start an execution now, as a slot of the schedule NAME would, and print its ID."""
    answer = ask(options, lambda client: client.trigger_schedule(name))
    if options["as_json"]:
        print_json(answer)
    else:
        print(answer["execution_id"])


@schedules.command("delete", epilog="Example:\n\n\b\n  penstock schedules delete nightly")
@click.argument("name", metavar="NAME")
@as_json
@server_options
def delete_schedule(name: str, **options: Any) -> None:
    """Delete the schedule NAME, with what is known of its slots; what it has started goes on."""
    ask(options, lambda client: client.delete_schedule(name))
    _report(options, "deleted", name, {"name": name, "deleted": True})


def _report(options: dict[str, Any], what: str, name: str, answer: dict[str, Any]) -> None:
    from penstock.cli.safe_text import one_line

    if options["as_json"]:
        print_json(answer)
    else:
        print(one_line(f"{what} {name}"))


def _print_schedule(answer: dict[str, Any]) -> ScheduleView:
    from penstock.cli.safe_text import one_line
    from penstock.views.schedules import ScheduleView

    schedule = decode(answer, ScheduleView)
    print(one_line(f"{schedule.name} starts {schedule.workflow}: {_when_text(schedule)}"))
    print(one_line(f"next {_next_text(schedule)}"))
    catchup = schedule.catchup
    print(
        f"overlap {schedule.overlap}, catch-up {catchup.policy}"
        f" within {catchup.window_seconds:g} s, jitter {schedule.jitter_seconds:g} s"
    )
    for execution_id in schedule.running:
        print(one_line(f"running {execution_id}"))
    return schedule


def _when_text(schedule: ScheduleView) -> str:
    texts: list[str] = []
    for rule in schedule.when:
        if rule.cron is not None:
            texts.append(f"{rule.cron} {rule.timezone}")
        elif rule.every_seconds is not None:
            texts.append(f"every {rule.every_seconds:g} s")
        else:
            texts.append(f"at {rule.at}")
    return "; ".join(texts)


def _next_text(schedule: ScheduleView) -> str:
    if schedule.paused:
        return "nothing: paused"
    return "nothing: over" if schedule.next is None else schedule.next.local


def _print_upcoming(items: list[dict[str, Any]]) -> None:
    from penstock.cli.tables import show_table
    from penstock.views.schedules import UpcomingSlot

    if not items:
        print("It is over: it has no next slot.", file=sys.stderr)
        return
    upcoming: list[UpcomingSlot] = [decode(item, UpcomingSlot) for item in items]
    rows = [[slot.local, short_time(slot.at), slot.note or ""] for slot in upcoming]
    show_table(["local", "utc", "note"], rows)


def _print_slots(items: list[dict[str, Any]]) -> None:
    from penstock.cli.tables import show_table
    from penstock.views.schedules import SlotItem

    if not items:
        print("No slots yet.", file=sys.stderr)
        return
    rows: list[list[object]] = []
    for item in items:
        slot = decode(item, SlotItem)
        rows.append([slot.local, slot.outcome, slot.execution_id or "", slot.reason or ""])
    show_table(["slot", "outcome", "execution", "reason"], rows)
