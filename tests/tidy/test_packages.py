"""Every module is named in the docstring of its package, in a line, and nothing else is.

A newcomer reads the list before the folder, so a list that lacks a module, or names one that is
gone, is worse than none. A line is "- `module`: what it is".
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "penstock"
LINE = re.compile(r"^- `(\w+)`: \S", re.MULTILINE)
UNLISTED = ("__init__", "__main__")
WITHOUT_LIST = frozenset({"stores/postgres/migrations/versions"})
"""Steps of the schema: Alembic finds them by itself, and their names have numbers."""


def packages() -> list[str]:
    folders = [path.parent for path in sorted(PACKAGE.rglob("__init__.py"))]
    names = [folder.relative_to(PACKAGE).as_posix() for folder in folders]
    return [name for name in names if name not in WITHOUT_LIST]


def modules_of(package: str) -> list[str]:
    folder = PACKAGE / package
    modules = [path.stem for path in folder.glob("*.py") if path.stem not in UNLISTED]
    modules += [path.parent.name for path in folder.glob("*/__init__.py")]
    return sorted(modules)


def listed_in(text: str) -> list[str]:
    return sorted(LINE.findall(ast.get_docstring(ast.parse(text)) or ""))


def test_packages_are_seen():
    assert {".", "engine", "stores/redis"} <= set(packages())
    assert "tiering" in modules_of("orchestrator")


@pytest.mark.parametrize("package", packages())
def test_a_package_names_all_of_its_modules_once_and_no_others(package: str):
    text = (PACKAGE / package / "__init__.py").read_text(encoding="utf-8")
    assert listed_in(text) == modules_of(package)


def test_only_lines_of_the_list_count():
    text = (
        '"""A package.\n\n- `one`: the first; `two` is inside.\n'
        '- `three`\n    - `four`: indented.\n"""'
    )
    assert listed_in(text) == ["one"]
