"""Runs what a page shows, and compares what comes out with what the page shows of it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, which

from tests.docs.installed import Installed
from tests.docs.pages import ROOT, Block, files_before

PATIENCE_SECONDS = 100
ANYTHING = "…"
"""A line of its own on a page: lines that aren't shown."""
EXIT_CODE = "echo $?"
ASSIGNMENT = re.compile(r"([A-Z_][A-Z0-9_]*)=(.*)", re.DOTALL)

SERVED = "localhost:8000"
ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
VARIABLE_PARTS = (
    (ID, "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"), "TIME"),
    (re.compile(r"^ *\d+\.\d{3}s(?=  )", re.MULTILINE), "AT"),
    (re.compile(r"<?\b\d+(?:\.\d+)? (?:ms|s|min)\b"), "DURATION"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), r"\1:PORT"),
    (re.compile(r"\bport \d+"), "port PORT"),
    (re.compile(r"\b(?:Redis|Valkey|PostgreSQL) \d[\d.]*(?=, port)"), "SERVER"),
    (re.compile(r"\bprocess \d+"), "process PID"),
    (re.compile(r"\bworker-\d+-[0-9a-f]+"), "WORKER"),
    (re.compile(r"(?<![\w/:.])/(?:[\w.-]+/)+"), "FOLDER/"),
)


def serve(
    installed: Installed, directory: Path, command: str = "penstock dev"
) -> tuple[subprocess.Popen[str], str]:
    """The service that a page tells its reader to start, and its address, on a free port."""
    process = subprocess.Popen(
        _resolved(shlex.split(command), installed),
        cwd=directory,
        env=environment({"PENSTOCK_PORT": "0"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().rpartition("//")[2].strip()


@contextmanager
def served(installed: Installed, directory: Path) -> Iterator[str]:
    """`penstock dev`, as the page tells its reader to start it."""
    process, address = serve(installed, directory)
    with process:
        try:
            yield address
        finally:
            process.terminate()


@dataclass(frozen=True)
class Step:
    command: str
    shown: str


def steps(block: Block) -> list[Step]:
    """Each `$ command` with the lines below it.

    A command that ends in a backslash goes on in the next line.
    """
    steps_found: list[Step] = []
    for line in block.text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            steps_found.append(Step(line[2:].strip(), ""))
        else:
            assert steps_found, f"{block.location}: a console block begins with a command"
            steps_found[-1] = Step(steps_found[-1].command, steps_found[-1].shown + line + "\n")
    return steps_found


def prepare(block: Block, directory: Path) -> None:
    """The examples, and the files that the page has shown so far."""
    copytree(ROOT / "examples", directory / "examples")
    for name, text in files_before(block).items():
        file = directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")


def run_block(block: Block, directory: Path, installed: Installed) -> None:
    prepare(block, directory)
    serving = served(installed, directory) if "served" in block.marks else nullcontext(SERVED)
    with serving as address:
        _run_steps(block, directory, installed, {SERVED: address})


def _run_steps(
    block: Block, directory: Path, installed: Installed, stands_for: dict[str, str]
) -> None:
    """Run the steps of a block and compare their output with the page.

    `stands_for` maps what the page shows to what it is here: the service's address, ids from
    earlier output.
    """
    code, output = 0, ""
    for step in steps(block):
        if step.command == EXIT_CODE:
            output, code = f"{code}\n", 0
        else:
            assert not code, (
                f"{block.location}: exit code {code}; "
                f"the page should show it with `$ {EXIT_CODE}`\n{output}"
            )
            command = step.command
            for shown, real in stands_for.items():
                command = command.replace(shown, real)
            ended = run_command(command, directory, installed)
            output, code = ended.stdout, ended.returncode
            stands_for |= dict(zip(ID.findall(step.shown), ID.findall(output), strict=False))
        if step.shown.strip():
            assert_same(output, step.shown, f"{block.location}: {step.command}")
    assert not code, (
        f"{block.location}: exit code {code}; "
        f"the page should show it with `$ {EXIT_CODE}`\n{output}"
    )


def run_command(
    command: str,
    directory: Path,
    installed: Installed,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a line of a page: one program with its arguments, and variables before it."""
    words = shlex.split(command)
    variables = dict(variables or {})
    while assignment := ASSIGNMENT.fullmatch(words[0]):
        variables[assignment[1]] = assignment[2]
        words.pop(0)
    return start(_resolved(words, installed), directory, variables, stderr=subprocess.STDOUT)


def _resolved(words: list[str], installed: Installed) -> list[str]:
    """The command with the program that a reader who has activated the venv would call."""
    program, *arguments = words
    curl = which("curl")
    programs = {
        "penstock": [str(installed.programs / "penstock")],
        "python": [str(installed.python)],
        "pytest": [str(installed.python), "-m", "pytest", "-p", "no:cacheprovider"],
        "curl": [curl] if curl else [sys.executable, str(ROOT / "tests/docs/curl.py")],
    }
    assert program in programs, f"only {', '.join(programs)} are run, not {program!r}"
    return [*programs[program], *arguments]


def start(
    command: list[str],
    directory: Path,
    variables: Mapping[str, str] | None = None,
    stderr: int = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of this machine's own settings."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PENSTOCK_", "OPENAI_", "PYTEST_"))
    }
    return {**own, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", **(variables or {})}


def assert_same(output: str, shown: str, what: str) -> None:
    """Compare output after variable parts have been made equal.

    A line with nothing but … stands for any number of lines.
    """
    real, wanted = normal(output), normal(shown)
    pattern = "".join(_pattern(line) for line in wanted.split("\n"))
    assert re.fullmatch(pattern, real + "\n"), (
        f"{what}\n--- the page shows\n{wanted}\n--- it is\n{real}"
    )


def _pattern(line: str) -> str:
    if line.strip() == ANYTHING:
        return r"(?:.*\n)*"
    if line.endswith(ANYTHING):  # the rest of the line
        return re.escape(line.removesuffix(ANYTHING)) + r".*\n"
    return re.escape(line + "\n")


def normal(text: str) -> str:
    for pattern, stands_for in VARIABLE_PARTS:
        text = pattern.sub(stands_for, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
