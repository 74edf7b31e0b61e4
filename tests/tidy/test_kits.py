"""tests/README.md has a line for every module that tests share, and for no other."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
LINE = re.compile(r"^- `([\w/]+\.py)`: \S", re.MULTILINE)


def test_every_kit_is_listed_once_and_nothing_else_is():
    kits = [
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if not path.name.startswith("test_") and path.name != "__init__.py"
    ]
    listed = LINE.findall((TESTS / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(kits)
