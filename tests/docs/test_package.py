"""The package that is published: its page, its links, and what is in its files."""

from __future__ import annotations

import re
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.docs.installed import Installed, build
from tests.docs.pages import ROOT

REPOSITORY = "https://github.com/penstock/penstock"
FILES = f"{REPOSITORY}/blob/main/"
PICTURES = "https://raw.githubusercontent.com/penstock/penstock/main/"
ADDRESS = re.compile(r'(?:src|href)="([^"]+)"')


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def addresses(markdown: str) -> list[str]:
    """What a page shows and links to, once it is rendered as the package index does."""
    html = MarkdownIt("gfm-like", {"linkify": False}).disable("linkify").render(markdown)
    return ADDRESS.findall(html)


def test_the_page_of_the_package_is_the_readme(wheel: Path):
    metadata = metadata_of(wheel)
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_needs_nothing_beside_it():
    """A package index has no docs folder: relative links and pictures lead nowhere there."""
    found = addresses((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [address for address in found if "://" not in address] == []
    pictures = [address for address in found if address.startswith(PICTURES)]
    assert len(pictures) >= 2
    for address in found:
        for start in (FILES, PICTURES):
            if address.startswith(start):
                path = ROOT / address.removeprefix(start).partition("#")[0]
                assert path.is_file(), address


def test_the_projects_addresses_are_absolute_and_lead_to_files():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} <= set(
        project["urls"]
    )
    for address in project["urls"].values():
        assert address.startswith(REPOSITORY)
        if address.startswith(FILES):
            assert (ROOT / address.removeprefix(FILES)).is_file(), address


def test_the_readme_has_a_line_for_each_role():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    extras = set(project["optional-dependencies"]) - {"contract"}
    assert extras == set(re.findall(r"pip install 'penstock\[(\w+)\]'` \|", shown))


def test_the_wheel_is_what_the_readers_use(installed: Installed):
    assert (installed.packages / "penstock" / "__init__.py").is_file()
    assert (installed.packages / "penstock" / "cli" / "templates" / "gitignore").is_file()
    assert (installed.programs / "penstock").is_file()


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_only_files_of_the_tree_are_packed(kind: str, tmp_path: Path):
    built = build(ROOT, tmp_path / kind, kind)
    if kind == "wheel":
        with zipfile.ZipFile(built) as archive:
            names = archive.namelist()
        sources = [f"src/{name}" for name in names if ".dist-info/" not in name]
    else:
        with tarfile.open(built) as archive:
            names = [name.partition("/")[2] for name in archive.getnames()]
        sources = [name for name in names if name != "PKG-INFO"]
    assert "src/penstock/py.typed" in sources
    assert "src/penstock/ui/index.html" in sources
    assert [name for name in sources if not (ROOT / name).is_file()] == []
    assert [name for name in sources if "__pycache__" in name or name.endswith(".db")] == []
