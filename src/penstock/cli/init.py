"""`penstock init`: a small project to begin with."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

EPILOG = """Templates:

\b
  hello    a workflow in JSON with a handler in Python
  http     two HTTP calls at once, and a handler that joins their answers
  llm      two calls of a language model, one with a structured answer
  python   a workflow written in Python

Examples:

\b
  penstock init
  penstock init reviews --template llm

It never overwrites a file."""


class Template(NamedTuple):
    """What a template has besides the files that all projects have."""

    files: tuple[str, ...]
    command: str
    """What gives the first result, from the project's folder."""
    hint: str = ""
    has_document: bool = True
    """Whether its workflow is a document, which a server can store."""


DOCUMENT_FILES = ("workflow.json", "handlers.py", "test_workflow.py")
TEMPLATES = {
    "hello": Template(DOCUMENT_FILES, "penstock run workflow.json"),
    "http": Template(
        DOCUMENT_FILES,
        "penstock run workflow.json --mock",
        "With --mock nothing is called. Without it, api.github.com is.",
    ),
    "llm": Template(
        DOCUMENT_FILES,
        "penstock run workflow.json --mock",
        "With --mock no model is called. Without it, set OPENAI_API_KEY first, or"
        " PENSTOCK_LLM_BASE_URL to the address of another OpenAI-compatible server.",
    ),
    "python": Template(
        ("flow.py", "handlers.py", "test_flow.py"), "python flow.py", has_document=False
    ),
}
SHARED_FILES = {"penstock.toml": "penstock.toml", ".gitignore": "gitignore"}
"""Of every project, with their names among the templates.

A file named .gitignore there would be read by git and by the build of the package.
"""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="[DIR]", default=".")
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="hello",
    show_default=True,
    help="What the project shows.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def init(
    folder: str,
    template: str,
    *,
    as_json: bool,
    debug: bool,  # noqa: ARG001 -- the app looks at it
) -> None:
    """Write a small project: a workflow, handlers, a test.

    It goes into DIR, which is created if it isn't there, or into the current folder.
    """
    from penstock.cli.safe_text import clean, json_text

    chosen = TEMPLATES[template]
    target = Path(folder)
    names = write_project(target, template)
    if as_json:
        listing = {"folder": str(target.resolve()), "files": names, "next": chosen.command}
        print(json_text(listing))
    else:
        print("\n".join(clean(line) for line in _report(target, names, chosen)))


def write_project(target: Path, template: str) -> list[str]:
    """Write all files of a template, or refuse without having written one; returns their names."""
    from penstock.cli.reading import Refused

    sources = _sources(template)
    present = [name for name in sources if _is_taken(target / name)]
    if present:
        raise Refused(
            f"{target.resolve()} already has {', '.join(present)}, and nothing is overwritten;"
            " name another folder: penstock init DIR"
        )

    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, source in sources.items():
            # "x": a file that somebody else writes at this moment isn't overwritten either.
            with (target / name).open("x", encoding="utf-8", newline="\n") as opened:
                opened.write(source.read_text(encoding="utf-8"))
    except OSError as error:
        file = error.filename or target
        raise Refused(f"{file} can't be written: {error.strerror}") from None
    return list(sources)


def _sources(template: str) -> dict[str, Traversable]:
    """Where the text of each file is, by the file's name in the project."""
    folder = files("penstock.cli") / "templates"
    sources = {name: folder / template / name for name in TEMPLATES[template].files}
    return sources | {name: folder / source for name, source in SHARED_FILES.items()}


def _is_taken(path: Path) -> bool:
    """Also by a link that leads nowhere: writing would make a file at its other end."""
    return path.exists() or path.is_symlink()


def _report(target: Path, names: list[str], template: Template) -> list[str]:
    lines = [f"A new project in {target.resolve()}:", f"  {'  '.join(names)}", "", "Run it:"]
    if target.resolve() != Path.cwd():
        lines.append(f"  cd {shlex.quote(str(target))}")
    lines.append(f"  {template.command}")
    if template.hint:
        lines += ["", template.hint]
    lines += ["", "Then:", "  pytest         runs its tests (pip install pytest)"]
    if template.has_document:
        lines.append("  penstock dev   serves an API and a UI, http://localhost:8000/ui/")
    return lines
