"""`penstock schema`."""

from __future__ import annotations

import click

EPILOG = """Examples:

\b
  penstock schema > workflow.schema.json
  penstock schema | jq '.["$defs"].node.properties'

In an editor, `"$schema": "./workflow.schema.json"` in a document completes and checks its fields. A
server has the same schema at /schema.json."""


@click.command(epilog=EPILOG)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def schema(*, debug: bool) -> None:  # noqa: ARG001 -- the app looks at it
    """Print the JSON Schema of workflow documents."""
    from penstock.cli.safe_text import json_text
    from penstock.definition.document_schema import document_schema

    print(json_text(document_schema()))
