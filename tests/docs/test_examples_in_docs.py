"""What the docs show is true.

Documents compile, Python runs, commands print what stands below them, settings exist.
"""

from __future__ import annotations

import ast
import re
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from penstock import testing
from penstock.cli.app import COMMANDS, cli
from penstock.config import _READERS, PREFIX, Settings, key_variable
from penstock.definition.parse import parse
from penstock.definition.plan import compile_document
from penstock.definition.problems import Problem
from penstock.errors import InvalidWorkflow
from penstock.worker import secrets
from tests.cli.fleet import started
from tests.docs.commands import SERVED, assert_same, prepare, run_block, served, start, steps
from tests.docs.installed import Installed
from tests.docs.pages import (
    MARKS,
    ROOT,
    Block,
    before,
    blocks,
    blocks_of,
    code_spans,
    is_story,
    pages,
)
from tests.servers import open_folder

VARIABLE = re.compile(rf"{PREFIX}[A-Z0-9_]*[A-Z0-9]")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SETTINGS_ROW = re.compile(r"^\| `(PENSTOCK_\w+)` \| ([^|]*) \|", re.MULTILINE)
SETTINGS = {PREFIX + name.upper(): name for name in _READERS}
NAMED_BY_USERS = re.compile(rf"{secrets.PREFIX}\w+|{PREFIX}LLM_(\w+_)?API_KEY")


def of(*languages: str) -> list[Any]:
    return [
        pytest.param(block, id=block.location) for block in blocks() if block.language in languages
    ]


def alone(*languages: str) -> list[Any]:
    """Blocks that can be run by themselves."""
    return [case for case in of(*languages) if not is_story(case.values[0].page)]


def value_of(block: Block) -> Any:
    return parse(block.text, form="yaml" if block.language == "yaml" else "jsonc")


def is_workflow(value: Any) -> bool:
    return isinstance(value, dict) and ("nodes" in value or "dag" in value)


def test_the_pages_are_found():
    assert {"internals.md", "documents.md", "handlers.md", "embedding.md"} <= {
        path.name for path in pages()
    }
    assert {"json", "yaml", "python", "console"} <= {block.language for block in blocks()}


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=block.location) for block in blocks() if block.marks]
)
def test_every_mark_is_known(block: Block):
    assert block.marks <= MARKS


def problems_of(document: Any, *, allow_unknown_handlers: bool = False) -> list[Problem]:
    try:
        compile_document(document, allow_unknown_handlers=allow_unknown_handlers)
    except InvalidWorkflow as error:
        return error.problems
    return []


@pytest.mark.parametrize("block", of("json", "yaml"))
def test_a_document_compiles(block: Block):
    """Or is refused, where the page says so; other JSON and YAML can at least be read."""
    value = value_of(block)
    problems = problems_of(value) if is_workflow(value) else []
    if block.marks & {"refused", "unknown handlers"}:
        assert problems, "nothing is wrong with it; take the mark away"
    if "unknown handlers" in block.marks:
        problems = problems_of(value, allow_unknown_handlers=True)
    assert not problems or "refused" in block.marks


@pytest.mark.parametrize("block", [case for case in of("json") if "output" in case.values[0].marks])
def test_a_document_gives_the_output_that_is_shown(block: Block):
    document = before(block, "json", "yaml")
    assert testing.run(value_of(document)).result.output == value_of(block)


@pytest.mark.parametrize("block", of("python"))
def test_python_runs(block: Block, tmp_path: Path, installed: Installed):
    ast.parse(block.text)
    if "fragment" in block.marks:
        return
    prepare(block, tmp_path)
    script = tmp_path / (block.file or "example.py")
    script.parent.mkdir(exist_ok=True)
    serving = served(installed, tmp_path) if "served" in block.marks else nullcontext(SERVED)
    with serving as address:
        script.write_text(block.text.replace(SERVED, address), encoding="utf-8")
        ended = start([str(installed.python), "-W", "error", str(script)], tmp_path)
    assert ended.returncode == 0, ended.stderr
    next_block = next(
        (later for later in blocks() if later.page == block.page and later.line > block.line), None
    )
    if next_block is not None and "prints" in next_block.marks:
        assert_same(ended.stdout, next_block.text, block.location)


@pytest.mark.parametrize("block", alone("console"))
def test_commands_print_what_is_shown(block: Block, tmp_path: Path, installed: Installed):
    run_block(block, tmp_path, installed)


@pytest.mark.parametrize("block", [case for case in of("text") if "up" in case.values[0].marks])
def test_penstock_up_says_what_is_shown(block: Block):
    (step,) = steps(block)
    arguments = [*step.command.split()[1:], "--port", "0"]
    with (
        open_folder() as folder,
        started(*arguments, cwd=folder, env={"REDIS_URL": "", "DATABASE_URL": ""}) as up,
    ):
        up.says(step.shown.splitlines()[-1])
        assert_same(up.output, step.shown, block.location)
        assert up.terminate() == 0


@pytest.mark.parametrize("block", of("toml"))
def test_a_settings_file_is_accepted(block: Block, tmp_path: Path):
    (tmp_path / "penstock.toml").write_text(block.text, encoding="utf-8")
    Settings.load({}, {}, tmp_path)


def test_every_variable_on_the_pages_exists():
    variables = {
        *SETTINGS,
        PREFIX + "LLM_BASE_URL",
        key_variable("default"),
        PREFIX + "URL",
        PREFIX + "API_KEY",
    }
    for path in pages():
        named = set(VARIABLE.findall(path.read_text(encoding="utf-8")))
        unknown = {name for name in named - variables if not NAMED_BY_USERS.fullmatch(name)}
        assert not unknown, path.name


def settings_table() -> dict[str, str]:
    rows = SETTINGS_ROW.findall((ROOT / "docs/settings.md").read_text(encoding="utf-8"))
    assert len(rows) == len(dict(rows)), "a setting stands twice"
    return {name: default.strip() for name, default in rows}


def test_every_setting_is_in_the_table():
    assert settings_table().keys() == SETTINGS.keys()


@pytest.mark.parametrize("variable", sorted(SETTINGS))
def test_the_table_has_the_default(variable: str):
    """The table shows each setting's default.

    In backticks what the variable would hold; in words where there is none, or where the machine
    decides.
    """
    name = SETTINGS[variable]
    default = next(item.default for item in fields(Settings) if item.name == name)
    cell = settings_table()[variable]
    if cell.startswith("`"):
        assert _READERS[name](cell.strip("`")) == default
    else:
        assert default in (None, ()) or name == "worker_processes"


def help_of(command: str) -> str:
    cli_command = cli.get_command(click.Context(cli), command)
    assert cli_command is not None
    helps = [cli_command.get_help(click.Context(cli_command, info_name=command))]
    if isinstance(cli_command, click.Group):
        helps += [
            subcommand.get_help(click.Context(subcommand, info_name=name))
            for name, subcommand in cli_command.commands.items()
        ]
    return "\n".join(helps)


def flags_of(command: str) -> set[str]:
    return set(FLAG.findall(help_of(command)))


def test_every_flag_on_the_pages_exists():
    anywhere = {"--version"}.union(*map(flags_of, COMMANDS))
    lines = [
        (block.location, line)
        for block in blocks()
        if block.language == "console"
        for line in block.text.split("\n")
    ]
    commands = [
        (location, line.removeprefix("$ ")) for location, line in lines if line.startswith("$ ")
    ]
    commands += [
        (block.location, line)
        for block in blocks()
        if block.language == "sh"
        for line in block.text.split("\n")
    ]
    for location, text in [*code_spans(), *commands]:
        called = re.search(r"(?:^|\s)penstock ([a-z]+)", text)
        if called:
            assert called[1] in COMMANDS, f"{location}: there is no command {called[1]}"
            assert set(FLAG.findall(text)) <= flags_of(called[1]), f"{location}: {text}"
        elif text.startswith("--"):
            assert set(FLAG.findall(text)) <= anywhere, f"{location}: {text}"


def sections(path: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_to_a_section_leads_there():
    for path in pages():
        for target, anchor in re.findall(
            r"\]\(([\w./-]*)#([^)\s]+)\)", path.read_text(encoding="utf-8")
        ):
            page = path.parent / target if target else path
            assert anchor in sections(page), f"{path.name}: {target}#{anchor}"


def test_every_test_on_the_pages_exists():
    for location, text in code_spans():
        if named := re.fullmatch(r"tests/[\w/.]+", text):
            path = ROOT / named[0]
            assert path.is_file() or list(path.glob("test_*.py")), (
                f"{location}: there are no tests in {text}"
            )


PAGE = """
<!-- refused, file: a.json -->

```json
{}
```
text
```python
x
```
"""


def test_marks_belong_to_the_next_block_only():
    first, second = blocks_of("a.md", PAGE)
    assert (first.language, first.marks, first.file, first.line) == (
        "json",
        frozenset({"refused"}),
        "a.json",
        4,
    )
    assert (second.language, second.marks, second.file, second.text) == (
        "python",
        frozenset(),
        None,
        "x\n",
    )


@pytest.mark.parametrize("shown", ["a\nb\nc", "a\n…", "…\nc", "a\n…\nc", "…"])
def test_output_is_compared_line_by_line(shown: str):
    assert_same("a\nb\nc\n", shown, "")


@pytest.mark.parametrize("shown", ["a\nb", "b\n…", "…\nb", "a\n\nb\nc", ""])
def test_output_that_differs_is_caught(shown: str):
    with pytest.raises(AssertionError):
        assert_same("a\nb\nc\n", shown, "")


def test_what_varies_between_runs_is_made_equal():
    assert_same(
        "execution 01a1e1db-69b0-764e-ab19-2f781ea96fc9\n    0.002s  n  RETRYING  again in 51 ms\n"
        "at /tmp/x/h.py:7, http://127.0.0.1:4711/a\n2026-11-16T00:58:15+0000 INFO in <1 ms",
        "execution 00000000-0000-7000-8000-000000000000\n   12.345s  n  RETRYING  again in 50 ms\n"
        "at /home/ada/h.py:7, http://127.0.0.1:80/a\n2024-01-01T00:00:00+0000 INFO in 3 ms",
        "",
    )
    with pytest.raises(AssertionError):
        assert_same("0.002s  n  RETRYING", "0.002s  n  FAILED", "")
