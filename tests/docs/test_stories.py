"""README, the tutorial and every example, from the first command to the last.

Each is done word for word with the wheel, in a folder that is empty, or has the files of the
example and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from tests.docs.commands import assert_same, run_command
from tests.docs.installed import Installed
from tests.docs.pages import EXAMPLES, ROOT, blocks, is_story, page_name, pages
from tests.docs.reader import Reader

NO_COPIES = ignore_patterns("__pycache__", ".pytest_cache", "penstock.db*")
MAKEFILE = ROOT / "Makefile"
TUTORIAL = "docs/tutorial.md"
STORIES = [name for path in pages() if is_story(name := page_name(path))]


@pytest.fixture
def read(tmp_path: Path, wheel: Path, installed: Installed) -> Iterator[Callable[[str], Path]]:
    """Do what a page says; returns the folder in which that was done."""
    readers: list[Reader] = []

    def read_page(page: str) -> Path:
        folder = tmp_path / "folder"
        example = page.removesuffix("README.md")
        if example.startswith("examples/") and example != "examples/":
            copytree(EXAMPLES.parent / example, folder, ignore=NO_COPIES)
        else:
            folder.mkdir()
        reader = Reader(folder, tmp_path / "scratch", wheel, installed)
        readers.append(reader)
        for block in blocks():
            if block.page == page:
                reader.follow(block)
        return folder

    yield read_page
    for reader in readers:
        reader.kill_service()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", [page for page in STORIES if page != TUTORIAL])
def test_a_page_works_word_for_word(page: str, read: Callable[[str], Path]):
    read(page)


@pytest.mark.timeout(240)
def test_the_tutorial_works_in_an_empty_folder(read: Callable[[str], Path]):
    folder = read(TUTORIAL)
    letters = {path.read_text(encoding="utf-8") for path in (folder / "outbox").iterdir()}
    assert "To: linus@example.com\nWelcome, Linus! Example Ltd gets 20 % off.\n" in letters


def test_make_run_prints_what_is_shown(tmp_path: Path, installed: Installed):
    (recipe,) = re.findall(r"^\t@\$\(bin\)/(python .+)$", MAKEFILE.read_text(), re.MULTILINE)
    (block,) = [block for block in blocks() if "make run" in block.marks]
    copytree(EXAMPLES, tmp_path / "examples", ignore=NO_COPIES)
    ended = run_command(recipe, tmp_path, installed)
    assert_same(ended.stdout, block.text, block.location)


def test_every_example_has_a_page_with_commands():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    told = {
        block.page.split("/")[1]
        for block in blocks()
        if block.page.startswith("examples/") and block.language == "console"
    }
    assert folders == told
