"""Pages that are made from the code: the commands and the metrics."""

from __future__ import annotations

from collections.abc import Callable

import click
from prometheus_client.core import Metric

from penstock.cli.app import COMMANDS, cli
from penstock.telemetry.exposition import Exposition
from penstock.telemetry.metrics import Levels, Metrics

HELP_COLUMNS = 90
"""So that a page shows whole lines."""


def commands() -> str:
    """A section for each command, with its help as it is printed."""
    sections: list[str] = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        sections.append(_section(f"penstock {name}", command, "##"))
        if isinstance(command, click.Group):
            sections += [
                _section(f"penstock {name} {inner}", subcommand, "###")
                for inner, subcommand in command.commands.items()
            ]
    return "\n".join(sections)


def _section(path: str, command: click.Command, level: str) -> str:
    context = click.Context(
        command, info_name=path, max_content_width=HELP_COLUMNS, terminal_width=HELP_COLUMNS
    )
    lines = command.get_help(context)
    return f"{level} {path}\n\n```text\n{lines}\n```\n"


def metrics() -> str:
    """A table of the metrics, with the text that stands beside them on `/metrics`."""
    rows = ["| metric | kind | labels | |", "|---|---|---|---|"]
    for family in _families():
        if not family.name.startswith("penstock_"):
            continue
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        shown = ", ".join(f"`{label}`" for label in labels)
        rows.append(f"| `{name}` | {family.type} | {shown} | {family.documentation} |")
    return "\n".join(rows) + "\n"


def _families() -> list[Metric]:
    counters = Metrics()
    counters.executions_finished["COMPLETED"] = 1
    counters.retries["h"] = 1
    counters.dead_letters["h"] = 1
    counters.task_ended("h", "completed", 1)
    exposition = Exposition(counters)
    exposition._levels = Levels({0: 0}, {"q": (0, 0)}, 0)  # noqa: SLF001 -- as a scrape sets it
    return list(exposition.registry.collect())


MADE: dict[str, Callable[[], str]] = {"commands": commands, "metrics": metrics}
