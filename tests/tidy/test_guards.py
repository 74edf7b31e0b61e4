"""The guards that `make guards` takes out are there: a guard that moved would otherwise be noticed weeks later."""

from __future__ import annotations

import pytest

from scripts.guards import GUARDS, ROOT, documented


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_stands_in_the_code_once(guard):
    assert (ROOT / "src" / "penstock" / guard.file).read_text(encoding="utf-8").count(guard.code) == 1


def test_the_list_for_readers_names_the_same_guards():
    assert documented() == {guard.name for guard in GUARDS}
