"""Patterns find code by its structure, whatever it looks like, and say so when they don't."""

from __future__ import annotations

import ast

import pytest

from scripts.patterns import Location, PatternError, Sql, apply

CODE = """\
LIMITS = {"low": 1, "high": (2, 3)}


class Store:
    def commit(self, commit, now):
        if (
            self.lease is None  # "é": columns are counted in bytes
            or (commit.token != self.lease.token and self.is_owned)
        ):
            raise Fenced("another owner")
        self.check(commit.number, strict=True)
        for task in commit.tasks:
            if task.is_late(now):
                continue
            self.put(task)
        try:
            self.write([task for task in commit.tasks if (task.id not in self.seen)])
        except OSError:
            self.close()

    def release(self, lease):
        if lease.token == self.lease.token:
            self.lease = None
        elif lease.is_old:
            self.check(lease.number)
"""

SCRIPT = """\
local function is_mine(id)
  local mine = redis.pcall('XPENDING', KEYS[1], id, 'end')  -- if there is one then
  return not mine.err and #mine > 0
end
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] and left > 0 then
  return 0
end
if #mine > 0 then
  return 1
end
"""

STATEMENTS = '''\
UPDATE = f"""
    UPDATE executions SET state = copy.state
    WHERE executions.id = copy.id AND {IS_OPEN}
      AND (executions.generation, executions.revision)
        < (copy.generation, copy.revision)
"""


def close(number):
    run("UPDATE letters SET closed = now()" f" WHERE n = {number} AND closed IS NULL")
    run("SELECT n FROM letters WHERE closed IS NULL FOR UPDATE")
'''

FILE = """\
-- lock --
SELECT n FROM executions WHERE id = %s FOR UPDATE;
-- unlock --
SELECT n FROM executions
WHERE id = %s AND state <> 'PAUSED';
"""


def python(at: str, pattern: str, without: str, source: str = CODE) -> str:
    """What the lines that are changed have become, without their indentation."""
    edits = Location("x.py", at, pattern).edits(source, without)
    changed = apply(edits, source)
    compile(changed, "x.py", "exec")
    return difference(source, changed)


def difference(source: str, changed: str) -> str:
    before, after = source.splitlines(), changed.splitlines()
    first = next(n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    end = next(n for n in range(len(after)) if before[-1 - n :] != after[-1 - n :])
    return "\n".join(line.strip() for line in after[first : len(after) - end])


@pytest.mark.parametrize(
    ("pattern", "without", "changed"),
    [
        ("self.lease is None", "False", 'False  # "é": columns are counted in bytes'),
        ("self.check(_, strict=_)", "pass", "pass"),
        ("self.check(...)", "self.count()", "self.count()"),
        ("raise Fenced(...)", "return", "return"),
        ("self._(task)", "task.drop()", "task.drop()"),
        ("task.is_late(_)", "task.is_early(_)", "if task.is_early(now):"),
        ("if task.is_late(_): ...", "if False: ...", "if False:"),
        ("if task.is_late(_): ...", "if False and now: ...", "if (False and now):"),
        ("for _ in _: ...", "for task in (): ...", "for task in ():"),
        ("except OSError: ...", "except KeyError: ...", "except KeyError:"),
        ("except OSError: ...", "except OSError: raise", "raise"),
    ],
)
def test_only_what_differs_between_pattern_and_rest_is_changed(pattern, without, changed):
    assert python("Store.commit", pattern, without) == changed


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("self.lease is None", "commit.token != self.lease.token and self.is_owned"),
        ("commit.token != _ and _", "self.lease is None"),
        ("self.is_owned", "self.lease is None or commit.token != self.lease.token"),
        ("commit.token != _", "self.lease is None or self.is_owned"),
    ],
)
def test_an_operand_is_removed_with_its_connective_and_its_parentheses(pattern, left):
    edits = Location("x.py", "Store.commit", pattern).edits(CODE, "")
    nodes = ast.walk(ast.parse(apply(edits, CODE)))
    conditions = [ast.unparse(node.test) for node in nodes if isinstance(node, ast.If)]
    assert left in conditions


def test_an_operand_that_stands_twice_is_named_by_the_whole_condition():
    source = "if a and b:\n    pass\nif a:\n    pass\n"
    assert python("", "a and _", "_", source) == "if b:"
    assert python("", "a and _", "a", source) == "if a :"


def test_statements_and_conditions_of_comprehensions_are_removed():
    assert python("Store.commit", "self.check(...)", "") == ""
    assert python("Store.commit", "raise Fenced(...)", "") == "pass"
    removed = python("Store.commit", "_ not in self.seen", "")
    assert removed == "self.write([task for task in commit.tasks ])"


def test_what_stays_may_have_statements_and_operands_beside_it():
    late = "if _.is_late(_): ..."
    assert python("Store.commit", late, f"now += 1\n{late}") == "now += 1"
    inside = "if _.is_late(_):\n    now += 1\n    ..."
    assert python("Store.commit", late, inside) == "now += 1"
    added = python("Store.commit", late, "if _.is_late(_) and now: ...")
    assert added == "if ((task.is_late(now)) and now):"


def test_statements_between_two_that_are_removed_stay():
    pattern = "self.check(...)\n...\ntry: ...\nexcept OSError: ..."
    edits = Location("x.py", "Store.commit", pattern).edits(CODE, "...")
    [function] = [
        node
        for node in ast.walk(ast.parse(apply(edits, CODE)))
        if isinstance(node, ast.FunctionDef) and node.name == "commit"
    ]
    assert [type(statement) for statement in function.body] == [ast.If, ast.For]


def test_a_dict_may_have_further_entries():
    assert python("", '{"high": _}', '{"high": 4}') == 'LIMITS = {"low": 1, "high": 4}'


def test_a_pattern_matches_in_its_function_only():
    assert Location("x.py", "Store.release", "self.check(...)").span(CODE)
    with pytest.raises(PatternError, match=r"x\.py: `self\.check\(\.\.\.\)` matches nothing"):
        Location("x.py", "", "self.check(...)").span(CODE)
    with pytest.raises(PatternError, match=r"x\.py, Store\.open: there is no Store\.open"):
        Location("x.py", "Store.open", "self.check(...)").span(CODE)


@pytest.mark.parametrize(
    ("file", "source", "pattern", "problem"),
    [
        ("x.py", "a(1)\nb()\na(2)\n", "a(...)", "`a(...)` matches 2 times, in lines 1, 3"),
        ("x.py", "a(1)\n", "a(2)", "`a(2)` matches nothing"),
        ("x.py", "a(1)\n", "a(", "`a(` is no Python"),
        ("x.lua", "a(1)\na(2)\n", "a(_)", "`a(_)` matches 2 times, in lines 1, 2"),
        ("x.lua", "a(1)\n", "b(1)", "`b(1)` matches nothing"),
        ("x.lua", "a(1)\n", "a(...", "`a(...` begins or ends with a wildcard"),
    ],
)
def test_a_pattern_that_does_not_match_once_says_so(file, source, pattern, problem):
    with pytest.raises(PatternError) as error:
        Location(file, "", pattern).span(source)
    assert problem in str(error.value)


def test_what_is_left_must_say_all_that_is_new():
    with pytest.raises(PatternError, match="doesn't say what"):
        Location("x.py", "Store.commit", "self.check(...)").edits(CODE, "self.count(...)()")
    with pytest.raises(PatternError, match="can't be removed"):
        Location("x.py", "Store.commit", "commit.number").edits(CODE, "")
    with pytest.raises(PatternError, match="doesn't say what"):
        Location("x.lua", "", "if #mine > 0 then").edits(SCRIPT, "if _ > 0 then")


@pytest.mark.parametrize(
    ("at", "pattern", "without", "changed"),
    [
        ("", "if redis.call('HGET', ...) ~= _ and ... then", "if false then", "if false then"),
        ("", "and left > 0", "", "if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1]  then"),
        ("is_mine", "not mine.err and #mine > 0", "true", "return true"),
        ("is_mine", "and\n#mine>0 -- some", "", "return not mine.err"),
        ("", "if #mine > 0 then", "if true then", "if true then"),
    ],
)
def test_lua_is_compared_by_its_tokens(at, pattern, without, changed):
    edits = Location("x.lua", at, pattern).edits(SCRIPT, without)
    assert difference(SCRIPT, apply(edits, SCRIPT)) == changed


@pytest.mark.parametrize(
    ("at", "pattern", "without", "changed"),
    [
        ("UPDATE", "AND {IS_OPEN}", "", "WHERE executions.id = copy.id"),
        ("UPDATE", "copy.state", "'PAUSED'", "UPDATE executions SET state = 'PAUSED'"),
        ("UPDATE", "(executions.generation, _) < (...)", "true", "AND true"),
        ("close", "AND closed IS NULL", "", 'f" WHERE n = {number} ")'),
        ("close", "= now() WHERE", "= 1 WHERE", 'SET closed = 1" f" WHERE n'),
        ("close", "FOR UPDATE", "", 'WHERE closed IS NULL ")'),
    ],
)
def test_sql_in_a_module_is_compared_by_its_words(at, pattern, without, changed):
    edits = Location("x.py", at, Sql(pattern)).edits(STATEMENTS, without)
    assert changed in difference(STATEMENTS, apply(edits, STATEMENTS))


def test_sql_in_a_file_is_found_under_its_name():
    location = Location("x.sql", "unlock", "AND state <> _;")
    assert difference(FILE, apply(location.edits(FILE, ";"), FILE)) == "WHERE id = %s ;"
    with pytest.raises(PatternError, match="there is no statement close"):
        Location("x.sql", "close", "FOR UPDATE").span(FILE)
    with pytest.raises(PatternError, match="matches nothing"):
        Location("x.sql", "unlock", "FOR UPDATE").span(FILE)
