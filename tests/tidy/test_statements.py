"""Statements of SQL: every one that a module names is in the file beside it, and has a header."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.stores.sql.statements import parse, statements_beside

STORES = Path(__file__).parents[2] / "src" / "penstock" / "stores"
HEADING = re.compile(r"^-- (\w+) --\n(.*)$", re.MULTILINE)
MODULES = [
    path
    for path in sorted(STORES.rglob("*.py"))
    if "statements_beside(__file__)" in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(STORES).as_posix())
def test_a_module_uses_the_statements_of_its_file(module: Path) -> None:
    used = set(re.findall(r"\bSQL\.(\w+)", module.read_text("utf-8")))
    source = module.with_suffix(".sql").read_text("utf-8")
    headers = HEADING.findall(source)
    assert used == {name for name, _ in headers}
    assert [name for name, _ in headers] == list(dict.fromkeys(name for name, _ in headers))
    assert [name for name, first_line in headers if not first_line.startswith("-- ")] == [], (
        "say what it does, its arguments and its result"
    )
    statements = statements_beside(str(module))
    assert all(getattr(statements, name) for name in used)


def test_a_statement_is_known_by_its_name_and_has_no_comments() -> None:
    statements = parse(
        "-- A file.\n\n-- one --\n-- Says 1.\nSELECT 1\n\n-- two --\n-- 2.\nSELECT\n  2\n"
    )
    assert (statements.one, statements.two) == ("SELECT 1", "SELECT\n  2")
    with pytest.raises(AttributeError, match="there is no statement 'three'"):
        assert statements.three
