"""The recipes of CONTRIBUTING.md name files, functions and folders that exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.names import SOURCE, check_item, files, is_file, items, spans
from tests.docs.pages import ROOT

PAGE = "CONTRIBUTING.md"
FOLDER = re.compile(r"[\w/]+/")


@pytest.mark.parametrize(("path", "name"), items(PAGE))
def test_every_name_in_a_file_exists(path, name):
    check_item(path, name)


@pytest.mark.parametrize("name", [name for name in files(PAGE) if "/" in name])
def test_every_file_exists(name):
    assert is_file(name)


def test_every_folder_exists():
    for name in spans(PAGE):
        if FOLDER.fullmatch(name):
            assert (SOURCE / name).is_dir() or (ROOT / name).is_dir(), name


def test_there_are_recipes():
    assert len(items(PAGE)) > 20
