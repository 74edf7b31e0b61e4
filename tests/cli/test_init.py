"""`penstock init`: the project runs, its tests pass, and nothing is overwritten."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from penstock.cli.init import SHARED_FILES, TEMPLATES
from tests.cli.commands import ROOT, call, penstock, write

PROGRAMS = {"penstock": [sys.executable, "-m", "penstock"], "python": [sys.executable]}
RESULTS = {
    "hello": '"text": "Hello, world!"',
    "http": "A stand-in, not a real answer",
    "llm": "★☆☆☆☆ Mock LLM response to: Summarise this review",
    "python": "COMPLETED {'text': 'Hello, Ada Lovelace!', 'initials': 'AL'}",
}
"""What the first run of each template prints."""


def next_command(output: str) -> str:
    lines = output.splitlines()
    return lines[lines.index("Run it:") + 1].strip()


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_command_that_is_printed_gives_a_result(template: str, tmp_path: Path):
    written = penstock("init", "--template", template, cwd=tmp_path)
    assert (written.returncode, written.stderr) == (0, "")
    program, *arguments = shlex.split(next_command(written.stdout))
    done = call([*PROGRAMS[program], *arguments], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert RESULTS[template] in done.stdout


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_tests_of_the_project_pass(template: str, tmp_path: Path):
    penstock("init", "--template", template, cwd=tmp_path)
    options = ["-q", "-W", "error", "-p", "no:cacheprovider"]
    done = call([sys.executable, "-m", "pytest", *options], cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_file_of_a_template_is_written(template: str, tmp_path: Path):
    done = penstock("init", "--template", template, "--json", cwd=tmp_path)
    folder = ROOT / "src/penstock/cli/templates" / template
    names = sorted([path.name for path in folder.iterdir() if path.is_file()] + [*SHARED_FILES])
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    listing = json.loads(done.stdout)
    assert listing["folder"] == str(tmp_path)
    assert sorted(listing["files"]) == names
    assert listing["next"] == TEMPLATES[template].command


def test_a_folder_is_created_and_named_in_the_next_command(tmp_path: Path):
    done = penstock("init", "my flows/first", cwd=tmp_path)
    assert "\n  cd 'my flows/first'\n  penstock run workflow.json\n" in done.stdout
    assert (tmp_path / "my flows/first/workflow.json").is_file()


def test_nothing_is_overwritten_and_nothing_is_written(tmp_path: Path):
    write(tmp_path, {"handlers.py": "mine", "README.md": "mine too"})
    (tmp_path / "penstock.toml").symlink_to(tmp_path / "nowhere")
    done = penstock("init", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"penstock init: {tmp_path} already has handlers.py, penstock.toml,"
        " and nothing is overwritten; name another folder: penstock init DIR\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "README.md",
        "handlers.py",
        "penstock.toml",
    ]
    assert not (tmp_path / "nowhere").exists()
    assert (tmp_path / "handlers.py").read_text(encoding="utf-8") == "mine"


def test_other_files_are_no_hindrance(tmp_path: Path):
    write(tmp_path, {"README.md": "mine"})
    assert penstock("init", cwd=tmp_path).returncode == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine"


def test_a_file_as_the_folder_is_refused(tmp_path: Path):
    write(tmp_path, {"taken": ""})
    done = penstock("init", "taken", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "penstock init: taken can't be written: File exists\n"


def test_an_unknown_template_is_refused_with_the_known_ones(tmp_path: Path):
    done = penstock("init", "--template", "htp", cwd=tmp_path)
    assert done.returncode == 2
    assert "'hello', 'http', 'llm', 'python'" in done.stderr
    assert not list(tmp_path.iterdir())
