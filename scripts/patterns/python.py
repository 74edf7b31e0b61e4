"""Patterns of Python: a piece of code that is compared with the syntax tree of a function.

Formatting and comments don't matter: the tree has none. In a pattern

- `_` is any expression, and in a dotted name any name: `event.attempt != _`, `self._.clear()`
- `...` is any number of arguments, elements or statements: `check(...)`, `if lost: ...`
- an `else`, a `finally` or a decorator that isn't there may be there in the code
- a dict stands for one that may have further entries: `{_N.QUEUED: _}`

`edits` compares the pattern with what is to be left, and changes the code only where these differ:
whatever a wildcard stands for stays. If nothing is to be left, the code is removed: statements, an
operand of `and` or `or`, the `if` of a comprehension.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate
from textwrap import dedent, indent
from typing import NamedTuple

from scripts.patterns.source import Edit, PatternError, Span, check_matches

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_UNWRITTEN = {"ctx", "kind", "type_comment"}
_MAY_BE_MISSING = {"orelse", "finalbody", "decorator_list"}
_NEEDS_PARENTHESES = (
    ast.Await,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Lambda,
    ast.UnaryOp,
)
_HAVE_LOCATIONS = (ast.expr, ast.stmt, ast.ExceptHandler)
_REPLACEABLE = (*_HAVE_LOCATIONS, ast.keyword, ast.withitem, ast.comprehension)
_COMMENT = re.compile(r"#[^\n]*")
_CONNECTIVE = re.compile(r"\b(?:and|or)\b\s*")

_Pairs = dict[ast.AST, list[ast.AST]]
"""For each node of a pattern the nodes of the code that it stands for."""


class _Candidate(NamedTuple):
    nodes: list[ast.AST]
    siblings: list[ast.AST]
    """The body, the operands or the arguments that the nodes are among."""
    parent: ast.AST


class _Match(NamedTuple):
    code: _Candidate
    wanted: list[ast.AST]
    """The pattern's nodes."""
    pairs: _Pairs


def find(source: str, at: str, pattern: str) -> Span:
    return _span(source, _find(source, at, pattern).code.nodes)


def edits(source: str, at: str, pattern: str, without: str) -> list[Edit]:
    match = _find(source, at, pattern)
    if not without:
        return [_removal(source, match.code)]
    left = _parse(without)
    if isinstance(match.wanted[0], ast.expr):
        left = _as_expression(left)
    return _Replacement(source, match.pairs).of_body(match.wanted, left)


@lru_cache
def parse(source: str) -> ast.Module:
    return ast.parse(source)


def span_of(source: str, node: ast.AST) -> Span:
    return _span(source, [node])


def scopes(source: str, at: str) -> list[ast.AST]:
    """The functions or classes of this qualified name (a property may have two), or the module."""
    if not at:
        return [parse(source)]
    named = [node for name, node in _all_definitions(source) if name == at]
    if not named:
        raise PatternError(f"there is no {at}")
    return named


def nodes_in(scope: ast.AST) -> Iterator[ast.AST]:
    """Of a module or a class without what is in its functions and classes: they are scopes too."""
    inner = () if isinstance(scope, _FUNCTIONS) else (*_FUNCTIONS, ast.ClassDef)
    remaining = [scope]
    while remaining:
        node = remaining.pop()
        yield node
        if not isinstance(node, ast.JoinedStr):  # in Python 3.11 positions inside one are wrong
            children = ast.iter_child_nodes(node)
            remaining += [child for child in children if not isinstance(child, inner)]


@lru_cache
def _all_definitions(source: str) -> list[tuple[str, ast.AST]]:
    return list(_definitions(parse(source), ""))


def _definitions(parent: ast.AST, path: str) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield path + node.name, node
            yield from _definitions(node, f"{path}{node.name}.")
        else:
            yield from _definitions(node, path)


def _span(source: str, nodes: Sequence[ast.AST]) -> Span:
    first, last = nodes[0], nodes[-1]
    if not isinstance(first, _HAVE_LOCATIONS) or not isinstance(last, _HAVE_LOCATIONS):
        raise PatternError(
            f"`{ast.unparse(first)}` has no location of its own: name what it is part of"
        )
    return Span(
        _offset(source, first.lineno, first.col_offset),
        _offset(source, last.end_lineno or 0, last.end_col_offset or 0),
    )


def _offset(source: str, line: int, column: int) -> int:
    """A syntax tree counts columns in bytes of UTF-8."""
    lines, starts = _lines(source)
    return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())


@lru_cache
def _lines(source: str) -> tuple[list[str], list[int]]:
    lines = source.split("\n")
    return lines, [0, *accumulate(len(line) + 1 for line in lines)]


def _parse(pattern: str) -> list[ast.AST]:
    """Statements, or `except` clauses."""
    pattern = dedent(pattern).strip()
    try:
        if pattern.startswith("except"):
            attempt = parse(f"try: pass\n{pattern}").body[0]
            assert isinstance(attempt, ast.Try)
            return list(attempt.handlers)
        return list(parse(pattern).body)
    except SyntaxError as error:
        raise PatternError(f"`{pattern}` is no Python: {error.msg}") from error


def _as_expression(nodes: list[ast.AST]) -> list[ast.AST]:
    """The expression, if that is all: it may be a part of another one."""
    only = nodes[0]
    return [only.value] if len(nodes) == 1 and isinstance(only, ast.Expr) else nodes


def _find(source: str, at: str, pattern: str) -> _Match:
    wanted = _as_expression(_parse(pattern))
    matches = []
    for scope in scopes(source, at):
        for code in _candidates(scope, is_expression=isinstance(wanted[0], ast.expr)):
            pairs: _Pairs = {}
            if _same_list(wanted, code.nodes, pairs):
                matches.append(_Match(code, wanted, pairs))
    check_matches(source, pattern, [_span(source, match.code.nodes) for match in matches])
    return matches[0]


def _candidates(scope: ast.AST, *, is_expression: bool) -> Iterator[_Candidate]:
    """Each expression, or each run of statements or clauses."""
    for parent in nodes_in(scope):
        for siblings in _children(parent):
            for first, node in enumerate(siblings):
                if is_expression and isinstance(node, ast.Expr):
                    yield _Candidate([node.value], siblings, parent)
                elif is_expression and _is_operand(node, parent):
                    yield _Candidate([node], siblings, parent)
                elif not is_expression and isinstance(node, ast.stmt | ast.ExceptHandler):
                    for end in range(first + 1, len(siblings) + 1):
                        yield _Candidate(siblings[first:end], siblings, parent)


def _is_operand(node: ast.AST, parent: ast.AST) -> bool:
    """Whether this is an expression that is evaluated, not one that is assigned to."""
    is_target = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    return isinstance(node, ast.expr) and not is_target and not isinstance(parent, ast.Expr)


def _children(parent: ast.AST) -> Iterator[list[ast.AST]]:
    if isinstance(parent, ast.JoinedStr):
        return
    for _, value in ast.iter_fields(parent):
        nodes = value if isinstance(value, list) else [value]
        yield [node for node in nodes if isinstance(node, ast.AST)]


def _is_dots(node: object) -> bool:
    if isinstance(node, ast.Expr):
        return _is_dots(node.value)
    return isinstance(node, ast.Constant) and node.value is ...


def _is_wildcard(node: ast.AST) -> bool:
    return _is_dots(node) or (isinstance(node, ast.Name) and node.id == "_")


def _same(wanted: ast.AST, node: ast.AST, pairs: _Pairs) -> bool:
    pairs[wanted] = [node]
    if isinstance(node, ast.expr) and _is_wildcard(wanted):
        return True
    if type(wanted) is not type(node):
        return False
    if isinstance(wanted, ast.Constant) and isinstance(node, ast.Constant):
        return type(wanted.value) is type(node.value) and wanted.value == node.value
    if isinstance(wanted, ast.Call) and isinstance(node, ast.Call):
        return _same_call(wanted, node, pairs)
    if isinstance(wanted, ast.Dict) and isinstance(node, ast.Dict):
        return _has_entries(wanted, node, pairs)
    return all(
        _same_field(name, value, getattr(node, name), pairs)
        for name, value in ast.iter_fields(wanted)
        if name not in _UNWRITTEN
    )


def _same_field(name: str, wanted: object, value: object, pairs: _Pairs) -> bool:
    if isinstance(wanted, list) and isinstance(value, list):
        return (not wanted and name in _MAY_BE_MISSING) or _same_list(wanted, value, pairs)
    if isinstance(wanted, ast.AST) and isinstance(value, ast.AST):
        return _same(wanted, value, pairs)
    return wanted == value or (wanted == "_" and isinstance(value, str))


def _same_list(wanted: Sequence[ast.AST], nodes: Sequence[ast.AST], pairs: _Pairs) -> bool:
    if not wanted:
        return not nodes
    if not _is_dots(wanted[0]):
        if not nodes or not _same(wanted[0], nodes[0], pairs):
            return False
        return _same_list(wanted[1:], nodes[1:], pairs)
    for count in range(len(nodes) + 1):
        if _same_list(wanted[1:], nodes[count:], pairs):
            pairs[wanted[0]] = list(nodes[:count])
            return True
    return False


def _same_call(wanted: ast.Call, node: ast.Call, pairs: _Pairs) -> bool:
    """With further keyword arguments if the pattern has `...`."""
    if not _same(wanted.func, node.func, pairs):
        return False
    if not _same_list(wanted.args, node.args, pairs):
        return False
    has_dots = any(_is_dots(argument) for argument in wanted.args)
    if len(wanted.keywords) != len(node.keywords) and not has_dots:
        return False
    return all(
        any(_same(keyword, other, pairs) for other in node.keywords)  # in any order
        for keyword in wanted.keywords
    )


def _has_entries(wanted: ast.Dict, node: ast.Dict, pairs: _Pairs) -> bool:
    entries = list(zip(node.keys, node.values, strict=True))
    for key, value in zip(wanted.keys, wanted.values, strict=True):
        if not any(
            key is not None
            and other_key is not None
            and _same(key, other_key, pairs)
            and _same(value, other_value, pairs)
            for other_key, other_value in entries
        ):
            return False
    return True


def _removal(source: str, code: _Candidate) -> Edit:
    first, end = _span(source, code.nodes)
    if isinstance(code.siblings[0], ast.stmt):
        is_all = len(code.nodes) == len(code.siblings)
        return Edit(Span(first, end), "pass" if is_all else "")
    if isinstance(code.parent, ast.BoolOp):
        return Edit(_operand(source, code.parent, code.nodes[0]), "")
    if isinstance(code.parent, ast.comprehension) and code.nodes[0] in code.parent.ifs:
        keyword = source.rindex("if", 0, first)
        return Edit(Span(keyword, _after_closing(source, end, source[keyword:first])), "")
    raise PatternError(f"`{source[first:end]}` can't be removed: say what is left")


def _operand(source: str, parent: ast.BoolOp, node: ast.AST) -> Span:
    """With the `and` or `or` beside it, and the parentheses around it."""
    spans = [span_of(source, operand) for operand in parent.values]
    number = [id(operand) for operand in parent.values].index(id(node))
    first, end = spans[number]
    if number:
        start = spans[number - 1].end
        between = _without_comments(source[start:first])
        connective = _connective(between)
        opening = between[connective.end() :]
        return Span(start + connective.start(), _after_closing(source, end, opening))
    between = _without_comments(source[end : spans[1].first])
    connective = _connective(between)
    for _ in range(between.count(")", 0, connective.start())):
        first = source.rindex("(", 0, first)
    return Span(first, end + connective.end())


def _connective(between: str) -> re.Match[str]:
    connective = _CONNECTIVE.search(between)
    assert connective is not None
    return connective


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda comment: " " * len(comment[0]), text)


def _after_closing(source: str, end: int, opening: str) -> int:
    """The end with as many closing parentheses as `opening` has opening ones."""
    for _ in range(opening.count("(")):
        end = source.index(")", end) + 1
    return end


class _Replacement(NamedTuple):
    """What to change so that code that matched a pattern becomes as another one, `left`."""

    source: str
    pairs: _Pairs

    def of_body(self, wanted: Sequence[ast.AST], left: Sequence[ast.AST]) -> list[Edit]:
        edits: list[Edit] = []
        before = [ast.dump(node) for node in wanted]
        after = [ast.dump(node) for node in left]
        steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        for step, first, end, left_first, left_end in steps:
            replaced, added = wanted[first:end], left[left_first:left_end]
            if step == "insert":
                edits.append(self._insertion(wanted, first, added))
            elif step == "replace" and len(replaced) == len(added):
                edits += self._of_list(replaced, added)
            elif step != "equal":
                edits.append(self._of_run(replaced, added))
        return edits

    def _of_list(self, wanted: Sequence[ast.AST], left: Sequence[ast.AST]) -> list[Edit]:
        pairs = zip(wanted, left, strict=True)
        return [edit for node, other in pairs for edit in self._of_node(node, other)]

    def _of_node(self, wanted: ast.AST, left: ast.AST) -> list[Edit]:
        """Of the parts that differ, if those are expressions or statements; else of all of it."""
        if ast.dump(wanted) == ast.dump(left):
            return []
        if isinstance(wanted, ast.BoolOp) and ast.dump(left) in map(ast.dump, wanted.values):
            return [self._without_operand(wanted, left)]
        if isinstance(left, ast.BoolOp) and ast.dump(wanted) == ast.dump(left.values[0]):
            return self._with_operands(wanted, left)
        if type(wanted) is not type(left) or _is_wildcard(wanted):
            return [self._of_run([wanted], [left])]
        edits: list[Edit] = []
        for name, value in ast.iter_fields(wanted):
            other = getattr(left, name)
            if _dump(value) == _dump(other):
                continue
            if isinstance(value, _REPLACEABLE) and isinstance(other, _REPLACEABLE):
                edits += self._of_node(value, other)
            elif _are_all(value, other, ast.stmt):
                edits += self.of_body(value, other)
            elif _are_all(value, other, _REPLACEABLE) and len(value) == len(other):
                edits += self._of_list(value, other)
            else:
                return [self._of_run([wanted], [left])]
        return edits

    def _without_operand(self, wanted: ast.BoolOp, left: ast.AST) -> Edit:
        """Of `one and other` is left `other`."""
        removed = [operand for operand in wanted.values if ast.dump(operand) != ast.dump(left)]
        [parent], [node] = self.pairs[wanted], self.pairs[removed[0]]
        if len(wanted.values) != 2 or not isinstance(parent, ast.BoolOp):
            raise PatternError(f"`{ast.unparse(wanted)}` may lose one of two operands, not more")
        return Edit(_operand(self.source, parent, node), "")

    def _with_operands(self, wanted: ast.AST, left: ast.BoolOp) -> list[Edit]:
        """To `one` comes `and other`."""
        first, end = _span(self.source, self.pairs[wanted])
        connective = "and" if isinstance(left.op, ast.And) else "or"
        others = f" {connective} ".join(self._text([operand], 0) for operand in left.values[1:])
        return [
            Edit(Span(first, first), "(("),
            Edit(Span(end, end), f") {connective} {others})"),
        ]

    def _of_run(self, wanted: Sequence[ast.AST], left: Sequence[ast.AST]) -> Edit:
        nodes = [node for part in wanted for node in self.pairs[part]]
        span = _span(self.source, nodes)
        return Edit(span, self._text(left, span.first))

    def _insertion(self, wanted: Sequence[ast.AST], number: int, left: Sequence[ast.AST]) -> Edit:
        """Before a statement of the pattern."""
        if number == len(wanted) or not self.pairs[wanted[number]]:
            raise PatternError(f"`{ast.unparse(left[0])}` has no statement behind it")
        first = _span(self.source, self.pairs[wanted[number]]).first
        indentation = self.source[self.source.rfind("\n", 0, first) + 1 : first]
        return Edit(Span(first, first), f"{self._text(left, first)}\n{indentation}")

    def _text(self, left: Sequence[ast.AST], first: int) -> str:
        for node in left:
            if any(_is_wildcard(part) for part in ast.walk(node)):
                raise PatternError(f"`{ast.unparse(node)}` doesn't say what `_` or `...` is there")
        text = "\n".join(ast.unparse(node) for node in left)
        if len(left) == 1 and isinstance(left[0], _NEEDS_PARENTHESES):
            return f"({text})"
        column = first - self.source.rfind("\n", 0, first) - 1
        return indent(text, " " * column).lstrip()


def _dump(value: object) -> object:
    if isinstance(value, list):
        return [_dump(element) for element in value]
    return ast.dump(value) if isinstance(value, ast.AST) else value


def _are_all(wanted: object, left: object, kind: type | tuple[type, ...]) -> bool:
    """Whether these are two lists of such nodes."""
    if not isinstance(wanted, list) or not isinstance(left, list):
        return False
    return all(isinstance(node, kind) for node in [*wanted, *left])
