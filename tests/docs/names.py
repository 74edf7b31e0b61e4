"""Names on pages: code spans such as "path.py: name", and what a module has.

The path is below src/penstock.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.docs.pages import CODE, ROOT

SOURCE = ROOT / "src" / "penstock"
ITEM = re.compile(r"([\w/]+\.py): ([\w.]+)")
FILE = re.compile(r"[\w/.-]*\w\.(?:py|lua|sql|md|toml|ts)")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@cache
def spans(page: str) -> list[str]:
    return CODE.findall((ROOT / page).read_text(encoding="utf-8"))


def items(page: str) -> list[tuple[str, str]]:
    """Files and the names in them that a page says they have."""
    found = [ITEM.fullmatch(span) for span in spans(page)]
    return sorted({(item[1], item[2]) for item in found if item is not None})


def files(page: str) -> list[str]:
    """Files that a page names alone."""
    return sorted({span for span in spans(page) if FILE.fullmatch(span)})


def is_file(name: str) -> bool:
    return (SOURCE / name).is_file() or (ROOT / name).is_file()


@cache
def names_in(path: str) -> frozenset[str]:
    """What a module defines at its top level, and the methods of its classes as `Class.method`."""
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        if isinstance(node, ast.ClassDef):
            members = [member for member in node.body if isinstance(member, DEFINITIONS)]
            names.update(f"{node.name}.{member.name}" for member in members)
    return frozenset(names)


def check_item(path: str, name: str) -> None:
    assert Path(SOURCE / path).is_file(), path
    assert name in names_in(path), f"{path} has no {name}"
