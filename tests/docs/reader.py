"""Somebody who does what a page says, word for word and in order.

Files are written when the page shows them, ids that a command prints are used by later commands,
and the service that the page starts in a second terminal runs beside the blocks that say so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.metadata import distribution
from pathlib import Path

from tests.docs.commands import (
    EXIT_CODE,
    ID,
    PATIENCE_SECONDS,
    SERVED,
    Step,
    assert_same,
    run_command,
    serve,
    steps,
)
from tests.docs.installed import Installed, build, new_venv
from tests.docs.pages import Block

KILL = "pkill -9 -f 'penstock dev'"
OF_THE_SHELL = ("touch", "rm", "ls", "cat", "mkdir")
PIP = "pip install "
REQUIREMENT = re.compile(r"'?([\w-]+)(?:\[[\w,]+\])?'?")
SERVICE = "penstock dev"


class Reader:
    """Does what a page says, in one folder, with one service at a time.

    `scratch` is for what the reader doesn't see: a venv of their own, if the page changes it.
    """

    def __init__(self, folder: Path, scratch: Path, wheel: Path, installed: Installed) -> None:
        self._folder = folder
        self._scratch = scratch
        self._wheel = wheel
        self._installed = installed
        self._is_own_venv = False
        self._service: subprocess.Popen[str] | None = None
        self._service_command = SERVICE
        self._address = SERVED
        self._stands_for: dict[str, str] = {}
        self._code = 0

    def follow(self, block: Block) -> None:
        if block.file:
            (self._folder / block.file).write_text(block.text, encoding="utf-8")
        if block.of:
            text = (self._folder / block.of).read_text(encoding="utf-8")
            assert text == block.text, f"{block.location} isn't {block.of}, which is\n{text}"
        if block.language == "sh":
            for line in block.text.splitlines():
                if line.startswith(SERVICE):
                    self._service_command = line.partition("#")[0]
        if block.language == "console":
            if "served" in block.marks:
                self._serve()
            for step in steps(block):
                self._do(step, f"{block.location}: {step.command}")
            assert not self._code, f"{block.location} ends with exit code {self._code}"

    def _serve(self) -> None:
        if self._service is None:
            self._service, self._address = serve(
                self._installed, self._folder, self._service_command
            )

    def kill_service(self) -> None:
        if self._service is not None:
            self._service.kill()
            self._service.communicate()
            self._service = None

    def _do(self, step: Step, where: str) -> None:
        if step.command == EXIT_CODE:
            output, self._code = f"{self._code}\n", 0
        else:
            assert not self._code, f"{where}: the command before it failed"
            output = self._run(step.command)
        self._stands_for |= dict(zip(ID.findall(step.shown), ID.findall(output), strict=False))
        if step.shown.strip():
            assert_same(output, step.shown, where)
        else:
            assert not self._code, f"{where}: exit code {self._code}\n{output}"

    def _run(self, command: str) -> str:
        for shown, real in {**self._stands_for, SERVED: self._address}.items():
            command = command.replace(shown, real)
        if command == KILL:
            self.kill_service()
        elif command.startswith(PIP):
            self._install(command.removeprefix(PIP).split())
        elif command.startswith("cd "):
            self._folder /= command.removeprefix("cd ")
        elif command.startswith(OF_THE_SHELL):
            return self._run_in_shell(command)
        else:
            variables = {"PENSTOCK_URL": f"http://{self._address}"}
            ended = run_command(command, self._folder, self._installed, variables)
            self._code = ended.returncode
            return ended.stdout
        return ""

    def _run_in_shell(self, command: str) -> str:
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
        self._code = ended.returncode
        return ended.stdout

    def _install(self, requirements: list[str]) -> None:
        """Install projects of the folder, without a network; packages of others must be there."""
        for requirement in requirements:
            if requirement.startswith("."):
                self._have_own_venv()
                project = self._folder / requirement
                self._installed.add(build(project, self._scratch / "wheels" / project.name))
            else:
                named = REQUIREMENT.fullmatch(requirement)
                assert named, f"{requirement!r} is neither a package nor a folder"
                distribution(named[1])

    def _have_own_venv(self) -> None:
        if not self._is_own_venv:
            self._installed = new_venv(self._scratch / "venv", self._wheel)
            self._is_own_venv = True
