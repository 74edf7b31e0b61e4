"""`penstock graph`."""

from __future__ import annotations

import sys

import click

EPILOG = """Examples:

\b
  penstock graph workflow.json
  penstock graph workflow.json --format mermaid > workflow.mmd
  penstock graph workflow.json --format dot | dot -Tsvg > workflow.svg"""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="text for people, mermaid for Markdown, dot for Graphviz.",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def graph(file: str, form: str, *, debug: bool) -> None:  # noqa: ARG001 -- the app looks at it
    """Draw the nodes and dependencies of the workflow in FILE. Handlers need not be installed."""
    from penstock.cli import diagrams, reading
    from penstock.config import Settings
    from penstock.definition.handler_configs import ConfigRules

    limits = reading.document_limits(Settings.load())
    document, source = reading.read_file(file, limits)
    compiled = reading.compile_file(
        source,
        document,
        allow_unknown_handlers=True,
        limits=limits,
        config_rules=ConfigRules(is_lenient=True),
        checked=True,
    )
    # An ASCII terminal shows ? instead of failing.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.stdout.writelines(line + "\n" for line in diagrams.FORMATS[form](compiled.plan))
