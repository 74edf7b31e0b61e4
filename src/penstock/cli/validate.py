"""`penstock validate`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from penstock.config import Settings

EPILOG = """Examples:

\b
  penstock validate workflow.json
  penstock validate flows/*.yaml --strict --handlers handlers.py
  penstock validate flow.py:flow
  penstock validate workflow.json --json | jq '.files[].errors'

Exit codes: 0 all documents are valid (warnings are allowed); 2 at least one is not."""


@click.command(short_help="Check documents and list all their problems.", epilog=EPILOG)
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option(
    "--handlers",
    multiple=True,
    metavar="MODULE|FILE.py",
    help="Where your own handlers are; repeatable.",
)
@click.option(
    "--allow-unknown-handlers", is_flag=True, help="Accept handlers that only other workers have."
)
@click.option("--strict", is_flag=True, help="Treat unknown fields as errors instead of warnings.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def validate(
    files: tuple[str, ...], handlers: tuple[str, ...], *, as_json: bool, **options: Any
) -> int:
    """Check the documents in FILE… and list all their problems. Nothing is run.

    FILE may also be FILE.py:NAME or MODULE:NAME, a penstock.Workflow or a dict in Python.
    """
    from penstock.cli import reading
    from penstock.cli.streams import captured
    from penstock.config import Settings
    from penstock.runtime.document_files import document_limits

    settings = Settings.load({"handlers": handlers or None})
    with captured(sys.stderr.write):
        reading.import_handlers(settings.handlers)

    checks = {
        "allow_unknown_handlers": options["allow_unknown_handlers"],
        "strict": options["strict"],
        "limits": document_limits(settings),
    }
    findings = [_check(file, settings, checks) for file in files]
    if as_json:
        _print_json(findings)
    else:
        for finding in findings:
            _print(finding)
    return 0 if all(finding["ok"] for finding in findings) else 2


def _check(file: str, settings: Settings, options: dict[str, Any]) -> dict[str, Any]:
    from msgspec import to_builtins

    from penstock.cli import reading
    from penstock.definition.plan import compile_document
    from penstock.errors import InvalidWorkflow
    from penstock.runtime.document_files import config_rules
    from penstock.worker.registry import registered

    finding: dict[str, Any] = {
        "file": reading.shown_name(file),
        "ok": False,
        "errors": [],
        "warnings": [],
    }
    source: reading.Source | None = None
    try:
        source = reading.read_source(file, options["limits"])
        document = reading.parse_source(source, options["limits"])
        # Not before: a workflow in Python registers its handlers when it is read.
        compiled = compile_document(
            document,
            checked=True,
            handlers=registered.defaults(),
            config_rules=config_rules(settings),
            **options,
        )
    except InvalidWorkflow as error:
        problems = source.located(error.problems) if source else error.problems
        return {**finding, "errors": to_builtins(problems)}

    plan = compiled.plan
    edges = sum(len(node.dependencies) for node in plan.nodes)
    warnings = to_builtins(source.located(compiled.warnings))
    return {
        **finding,
        "ok": True,
        "warnings": warnings,
        "name": plan.name,
        "nodes": len(plan.nodes),
        "edges": edges,
    }


def _print_json(findings: list[dict[str, Any]]) -> None:
    from penstock.cli.safe_text import json_text

    print(json_text({"ok": all(finding["ok"] for finding in findings), "files": findings}))


def _print(finding: dict[str, Any]) -> None:
    from penstock.cli.safe_text import counted, one_line
    from penstock.definition.problems import Problem

    for kind in ("errors", "warnings"):
        prefix = "warning: " if kind == "warnings" else ""
        for problem in finding[kind]:
            line = f"{prefix}{Problem(**problem).in_file(finding['file'])}"
            print(one_line(line, 2000), file=sys.stderr)
    if finding["ok"]:
        counts = f"{counted(finding['nodes'], 'node')}, {counted(finding['edges'], 'edge')}"
        warned = f", {counted(len(finding['warnings']), 'warning')}" if finding["warnings"] else ""
        print(f"ok: {one_line(finding['name'])}, {counts}{warned}", flush=True)
