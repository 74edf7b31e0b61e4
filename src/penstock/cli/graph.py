"""`penstock graph`."""

from __future__ import annotations

import sys
from typing import Any

import click

from penstock.cli.remote import as_json, print_json

EPILOG = """Examples:

\b
  penstock graph workflow.json
  penstock graph workflow.json --format mermaid > workflow.mmd
  penstock graph workflow.json --format dot | dot -Tsvg > workflow.svg
  penstock graph workflow.json --json | jq '.nodes[].id'"""


@click.command(short_help="Draw the nodes and dependencies of a workflow.", epilog=EPILOG)
@click.argument("file", metavar="FILE")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="text for people, mermaid for Markdown, dot for Graphviz.",
)
@as_json
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def graph(file: str, form: str, **options: Any) -> None:
    """Draw the nodes and dependencies of the workflow in FILE. Handlers need not be installed.

    FILE may also be FILE.py:NAME or MODULE:NAME, a penstock.Workflow or a dict in Python.
    """
    from penstock.cli import diagrams, reading
    from penstock.config import Settings
    from penstock.definition.handler_configs import ConfigRules
    from penstock.runtime.document_files import document_limits

    limits = document_limits(Settings.load())
    document, source = reading.read_file(file, limits)
    compiled = reading.compile_file(
        source,
        document,
        allow_unknown_handlers=True,
        limits=limits,
        config_rules=ConfigRules(is_lenient=True),
        checked=True,
    )
    if options["as_json"]:
        from msgspec import to_builtins

        from penstock.views.graphs import workflow_graph

        drawn = to_builtins(workflow_graph(compiled.plan))
        del drawn["version"]  # a file has none
        print_json(drawn)
        return
    # An ASCII terminal shows ? instead of failing.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.stdout.writelines(line + "\n" for line in diagrams.FORMATS[form](compiled.plan))
