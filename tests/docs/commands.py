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

from tests.docs.pages import ROOT, Block, files_before

PATIENCE_SECONDS = 30
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


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """`penstock dev`, as the page tells its reader to start it."""
    command = [sys.executable, "-m", "penstock", "dev", "--port", "0"]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().rpartition("//")[2].strip()
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


def run_block(block: Block, directory: Path) -> None:
    prepare(block, directory)
    with served(directory) if "served" in block.marks else nullcontext(SERVED) as address:
        _run_steps(block, directory, {SERVED: address})


def _run_steps(block: Block, directory: Path, stands_for: dict[str, str]) -> None:
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
            ended = run_command(command, directory)
            output, code = ended.stdout, ended.returncode
            stands_for |= dict(zip(ID.findall(step.shown), ID.findall(output), strict=False))
        if step.shown.strip():
            assert_same(output, step.shown, f"{block.location}: {step.command}")
    assert not code, (
        f"{block.location}: exit code {code}; "
        f"the page should show it with `$ {EXIT_CODE}`\n{output}"
    )


def run_command(
    command: str, directory: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a line of a page: one program with its arguments, and variables before it."""
    words = shlex.split(command)
    variables = dict(environment or {})
    while assignment := ASSIGNMENT.fullmatch(words[0]):
        variables[assignment[1]] = assignment[2]
        words.pop(0)
    programs = {
        "penstock": [sys.executable, "-m", "penstock"],
        "python": [sys.executable],
        "curl": [
            which("curl") or sys.executable,
            *([] if which("curl") else [str(ROOT / "tests/docs/curl.py")]),
        ],
    }
    assert words[0] in programs, f"only penstock, python and curl are run, not {words[0]!r}"
    return start([*programs[words[0]], *words[1:]], directory, variables, stderr=subprocess.STDOUT)


def start(
    command: list[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
    stderr: int = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PENSTOCK_", "OPENAI_"))
    }
    return subprocess.run(
        command,
        cwd=directory,
        env={**own, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=False,
    )


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
