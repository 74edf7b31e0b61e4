"""docs/internals.md follows one execution by file and function.

All of them exist, and there are few files.
"""

from __future__ import annotations

import pytest

from tests.docs.names import SOURCE, check_item, files, items

PAGE = "docs/internals.md"
FILES_MAX = 36


@pytest.mark.parametrize(("path", "name"), items(PAGE))
def test_every_function_of_the_walk_exists(path, name):
    check_item(path, name)


@pytest.mark.parametrize("name", files(PAGE))
def test_every_file_on_the_page_exists(name):
    assert (SOURCE / name).is_file()


def test_the_walk_is_long_and_its_files_are_few():
    assert len(items(PAGE)) > FILES_MAX
    assert len({path for path, _ in items(PAGE)}) <= FILES_MAX
