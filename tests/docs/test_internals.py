"""docs/internals.md follows one execution by file and function: all of them exist, and there are few.

An item is a code span "path.py: name" or "path.py: Class.name", with the path below src/penstock.
"""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.pages import CODE, ROOT

SOURCE = ROOT / "src" / "penstock"
PAGE = ROOT / "docs" / "internals.md"
ITEM = re.compile(r"([\w/]+\.py): ([\w.]+)")
FILE = re.compile(r"[\w/]+\.(?:py|lua)")
FILES_MAX = 36


@cache
def spans() -> list[str]:
    return CODE.findall(PAGE.read_text(encoding="utf-8"))


def items() -> list[tuple[str, str]]:
    found = [ITEM.fullmatch(span) for span in spans()]
    return sorted({(item[1], item[2]) for item in found if item is not None})


@cache
def names_in(path: str) -> frozenset[str]:
    """The functions and classes of a module, and the methods of its classes as `Class.method`."""
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names: set[str] = set()
    for node in tree.body:
        if not isinstance(node, definitions):
            continue
        names.add(node.name)
        if isinstance(node, ast.ClassDef):
            members = [member for member in node.body if isinstance(member, definitions)]
            names.update(f"{node.name}.{member.name}" for member in members)
    return frozenset(names)


@pytest.mark.parametrize(("path", "name"), items())
def test_every_function_of_the_walk_exists(path, name):
    assert (SOURCE / path).is_file(), path
    assert name in names_in(path), f"{path} has no {name}"


def test_every_file_on_the_page_exists():
    for span in spans():
        if FILE.fullmatch(span):
            assert (SOURCE / span).is_file() or list(SOURCE.rglob(span)), span


def test_the_walk_is_long_and_its_files_are_few():
    assert len(items()) > FILES_MAX
    assert len({path for path, _ in items()}) <= FILES_MAX
