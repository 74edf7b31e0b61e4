"""The tutorial, from its first command to its last, in one empty folder.

Its blocks depend on each other: files are written when the page shows them, ids that a command
prints are used by later ones, and `penstock dev` runs beside the blocks that say so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import (
    EXIT_CODE,
    ID,
    PATIENCE_SECONDS,
    SERVED,
    Step,
    assert_same,
    run_command,
    steps,
)
from tests.docs.pages import Block, blocks

PAGE = "docs/tutorial.md"
KILL = "pkill -9 -f 'penstock dev'"
OF_THE_SHELL = ("touch", "rm", "ls", "cat")


class Reader:
    """Does what the page says, in one folder and with one service."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._service: subprocess.Popen[str] | None = None
        self._address = SERVED
        self._stands_for: dict[str, str] = {}
        self._code = 0

    def serve(self) -> None:
        if self._service is not None:
            return
        service = subprocess.Popen(
            [sys.executable, "-m", "penstock", "dev", "--port", "0"],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert service.stdout is not None
        self._service = service
        self._address = service.stdout.readline().rpartition("//")[2].strip()

    def kill(self) -> None:
        if self._service is not None:
            self._service.kill()
            self._service.communicate()
            self._service = None

    def follow(self, block: Block) -> None:
        if block.file:
            (self._folder / block.file).write_text(block.text, encoding="utf-8")
        if block.language == "console":
            if "served" in block.marks:
                self.serve()
            for step in steps(block):
                self._do(step, f"{block.location}: {step.command}")
            assert not self._code, f"{block.location} ends with exit code {self._code}"

    def _do(self, step: Step, where: str) -> None:
        if step.command == EXIT_CODE:
            output, self._code = f"{self._code}\n", 0
        else:
            assert not self._code, f"{where}: the command before it failed"
            output = self._run(step.command)
        self._stands_for |= dict(zip(ID.findall(step.shown), ID.findall(output), strict=False))
        if step.shown.strip():
            assert_same(output, step.shown, where)

    def _run(self, command: str) -> str:
        if command == KILL:
            self.kill()
            return ""
        for shown, real in {**self._stands_for, SERVED: self._address}.items():
            command = command.replace(shown, real)
        if command.startswith(OF_THE_SHELL):
            program, *arguments = command.split()
            path = shutil.which(program)
            assert path
            ended = subprocess.run(
                [path, *arguments],
                cwd=self._folder,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        else:
            variables = {"PENSTOCK_URL": f"http://{self._address}"}
            ended = run_command(command, self._folder, variables)
        self._code = ended.returncode
        return ended.stdout


@pytest.mark.timeout(240)
def test_the_tutorial_works_in_an_empty_folder(tmp_path: Path):
    reader = Reader(tmp_path)
    try:
        for block in blocks():
            if block.page == PAGE:
                reader.follow(block)
    finally:
        reader.kill()
    letters = {path.read_text() for path in (tmp_path / "outbox").iterdir()}
    assert "To: linus@example.com\nWelcome, Linus! Example Ltd gets 20 % off.\n" in letters


def test_every_command_of_the_tutorial_is_run():
    """Only `penstock dev` is in a block that isn't: the reader starts it beside the others."""
    shown = [block for block in blocks() if block.page == PAGE and block.language == "sh"]
    assert [block.text for block in shown] == ["penstock dev\n"]
