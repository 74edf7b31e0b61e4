"""Patterns of SQL: a piece of a statement, compared word by word.

A statement is a string in a Python module, in the constant or the function that `at` names. In a
`.sql` file it stands under a line `-- name --`, and `at` is that name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from scripts.patterns import python
from scripts.patterns.source import Edit, PatternError, Span
from scripts.patterns.tokens import Language, Token

SQL = Language(
    re.compile(
        r"""
        \s+ | --[^\n]* | (?:\b[rf]{1,2})?"+
        | (?P<token> '[^']*' | %\(\w+\)s | %s | \w+ | <> | <= | >= | \|\| | :: | \.\.\. | . )
        """,
        re.VERBOSE | re.DOTALL,
    ),
    {
        *("AND", "OR", "WHERE", "SET", "FROM", "ORDER", "LIMIT", "GROUP", "RETURNING", "ON"),
        *("SELECT", "UNION", "JOIN", "USING", "VALUES", "THEN", "ELSE", "END", "FOR"),
        *(",", ";", "=", "<", ">", "<=", ">=", "<>"),
    },
)
_HEADING = re.compile(r"^-- (\w+) --$", re.MULTILINE)


def find(source: str, at: str, pattern: str) -> Span:
    return SQL.find(source, list(_statements(source, at)), pattern)


def edits(source: str, at: str, pattern: str, without: str) -> list[Edit]:
    return SQL.edits(source, list(_statements(source, at)), pattern, without)


def find_in_file(source: str, at: str, pattern: str) -> Span:
    return SQL.find(source, [_statement_of_file(source, at)], pattern)


def edits_in_file(source: str, at: str, pattern: str, without: str) -> list[Edit]:
    return SQL.edits(source, [_statement_of_file(source, at)], pattern, without)


def _statements(source: str, at: str) -> Iterator[Sequence[Token]]:
    for scope in _constants(source, at) or python.scopes(source, at):
        for node in python.nodes_in(scope):
            if _is_string(node):
                yield SQL.tokens(source, *python.span_of(source, node))


def _is_string(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.JoinedStr)


def _constants(source: str, name: str) -> list[ast.AST]:
    assignments = [node for node in python.parse(source).body if isinstance(node, ast.Assign)]
    return [node.value for node in assignments if ast.unparse(node.targets[0]) == name]


def _statement_of_file(source: str, at: str) -> Sequence[Token]:
    if not at:
        return SQL.tokens(source)
    headings = list(_HEADING.finditer(source))
    for number, heading in enumerate(headings):
        if heading[1] == at:
            is_last = number + 1 == len(headings)
            end = len(source) if is_last else headings[number + 1].start()
            return SQL.tokens(source, heading.end(), end)
    raise PatternError(f"there is no statement {at}")
