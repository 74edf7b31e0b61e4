"""The guards that `make guards` takes out are there, and every refusal is one.

Else it would be noticed weeks later.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

import pytest

from scripts.guards import GUARDS, LISTED, ROOT
from scripts.guards.guard import Guard
from scripts.guards.page import PAGE, page
from scripts.patterns import Sql
from scripts.patterns.lua import LUA
from scripts.patterns.sql import SQL
from scripts.refusals import excused_by, fences, forgotten, lua, sql, unguarded
from scripts.refusals.harmless import HARMLESS

LEASED = """\
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] and (ARGV[2] or '') ~= '' then  -- moved on then
  return redis.error_reply('FENCED')
end
local left = tonumber(ARGV[3]) or 0
local mine = left > 0 and redis.call('GET', KEYS[1])
return mine
"""
FENCED = """\
def commit(self, commit):
    if self.is_closed:
        raise Fenced("closed")
    if self.size > 3:
        return [run for run in self.runs if run.attempt == commit.attempt]
    try:
        self.lock()
    except OSError:
        raise StoreLocked("in use") from None
    if self.lease.token is None or self.size == 2:
        self.check(commit.token)
"""
WRITTEN = '''
PUT = """
    UPDATE executions SET state = copy.state, revision = copy.revision
    FROM copy WHERE executions.id = copy.id AND executions.revision < copy.revision
"""
LOCK = "SELECT n FROM executions WHERE id = %s FOR UPDATE"
'''


def tokens(script: str) -> list[str]:
    return [token.text for token in LUA.tokens(script)]


def sql_tokens(source: str) -> list[str]:
    return [token.text for token in SQL.tokens(source)]


@cache
def parsed(source: str) -> str:
    """What Python understands; a file has many guards."""
    return ast.dump(ast.parse(source))


@cache
def formatted_otherwise(source: str) -> str:
    return ast.unparse(ast.parse(source))


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_matches_once_and_the_code_without_it_compiles(guard):
    source = guard.location.text()
    changed = guard.taken_out(source)
    if guard.file.endswith(".py"):
        assert parsed(changed) != parsed(source)
    else:
        assert tokens(changed) != tokens(source)


@pytest.mark.parametrize("guard", LISTED, ids=lambda guard: guard.name)
def test_a_guard_takes_the_same_out_of_code_that_is_formatted_otherwise(guard):
    source = guard.location.text()
    changed = guard.taken_out(source)
    if guard.file.endswith(".lua"):
        assert tokens(guard.taken_out("\n".join(tokens(source)))) == tokens(changed)
    elif guard.file.endswith(".sql"):
        reformatted = source.replace("\n  ", "\n        ").replace(" AND ", "\n AND ")
        assert sql_tokens(guard.taken_out(reformatted)) == sql_tokens(changed)
    elif not isinstance(guard.pattern, Sql):
        reformatted = formatted_otherwise(source)
        assert parsed(guard.taken_out(reformatted)) == parsed(changed)


@pytest.mark.parametrize("guard", LISTED, ids=lambda guard: guard.name)
def test_the_tests_of_a_guard_are_there(guard):
    tests = [part for part in guard.test.split() if part.startswith("tests/")]
    assert tests
    assert all((ROOT / name.partition("::")[0]).exists() for name in tests)


def test_a_guard_has_a_name_of_its_own():
    assert [
        name for name, count in Counter(guard.name for guard in GUARDS).items() if count > 1
    ] == []


def test_the_list_for_readers_names_the_same_guards():
    assert PAGE.read_text(encoding="utf-8") == page(LISTED), (
        "python -m scripts.guards --list writes it again"
    )


def test_every_refusal_has_a_guard():
    missed = [str(refusal) for refusal in forgotten(GUARDS, HARMLESS)]
    assert missed == [], "add a guard, or the reason why this is none"


def test_what_is_harmless_is_still_there_and_has_a_reason():
    refusals = unguarded(GUARDS)
    wrong = [excuse for excuse in HARMLESS if len(excused_by(excuse, refusals)) != 1]
    assert wrong == [], "it has gone, or has a guard now, or stands for more than one refusal"
    assert all(excuse.reason for excuse in HARMLESS)


def test_every_transition_that_is_not_in_a_table_is_let_in_by_a_guard_of_its_own():
    refused = [guard for guard in GUARDS if guard not in LISTED]
    assert len(refused) == (81 - 22) + (36 - 11)
    assert len({guard.without for guard in refused}) == len(refused)


def test_in_lua_each_part_of_a_condition_is_a_refusal():
    assert [refusal.text for refusal in lua.refusals("x.lua", LEASED)] == [
        "redis.call('HGET', KEYS[1], 'token') ~= ARGV[1]",
        "(ARGV[2] or '') ~= ''",
        "left > 0 and redis.call('GET', KEYS[1])",
    ]


def test_in_python_what_raises_compares_or_checks_is_a_refusal():
    assert [refusal.text.partition(":")[0] for refusal in fences.refusals("x.py", FENCED)] == [
        "self.is_closed",
        "run.attempt == commit.attempt",
        "try",
        "self.check(commit.token)",
    ]


def test_in_sql_what_keeps_an_older_write_out_is_a_refusal():
    assert [refusal.text for refusal in sql.refusals("x.py", WRITTEN)] == [
        "executions.revision < copy.revision",
        "FOR UPDATE",
    ]


def test_a_guard_covers_only_what_is_gone_without_it():
    guard = Guard("", "x.lua", "", "if a and b then", "if b then", "")
    source = "-- if\nif a and b then"
    [span] = guard.spans(source)
    assert source[span.first : span.end] == "a and"


def test_a_guard_without_which_there_is_more_covers_all_that_it_names():
    guard = Guard("", "x.py", "f", "check(...)", "check(...) or True", "")
    source = "def f():\n    return check(1)\n"
    assert guard.taken_out(source) == "def f():\n    return ((check(1)) or True)\n"
    assert {source[span.first : span.end] for span in guard.spans(source)} == {"check(1)"}
