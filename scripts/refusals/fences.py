"""Fences in Python modules, found in their syntax tree.

- the condition under which one of `REFUSALS` is raised; of one in an `except`, all of its `try`
- each comparison with something that tells who may, or whether it is still current (`MARKS`)
- each call of a check (`check…`, `_holds`, …): the fence where it is used, not only its definition
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from scripts.patterns import python
from scripts.refusals.refusal import Refusal, refusal

REFUSALS = {
    "Fenced",
    "InvalidTransition",
    "Conflict",
    "KeyReused",
    "StoreLocked",
    "SchemaMismatch",
    "FeedGap",
}
MARKS = {
    *("token", "owner", "holder", "worker_id", "store_id", "layout", "built"),
    *("commit_number", "known_number", "generation", "attempt", "revision"),
    *("NODE_TRANSITIONS", "EXECUTION_TRANSITIONS", "NODE_ENDS", "EXECUTION_ENDS"),
    *("_claimed", "_queued", "_stopped", "_paused", "returned", "readied", "orphans"),
}
_CHECK = re.compile(r"_?check(?!_open)(_\w+)?|_?holds|_is_claimed_by|_may_run|_replaces|knows")


def refusals(file: str, source: str) -> Iterator[Refusal]:
    tree = python.parse(source)
    for span in sorted({python.span_of(source, node) for node in _fences(tree)}):
        yield refusal(file, source, span)


def _fences(
    tree: ast.AST, above: ast.expr | ast.stmt | None = None
) -> Iterator[ast.expr | ast.stmt]:
    """`above` is the condition, or the `try`, that the statement is under."""
    for node in ast.iter_child_nodes(tree):
        inner = above
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = None
        elif isinstance(node, ast.If):
            inner = node.test
        elif isinstance(node, ast.Try):
            inner = node
        elif isinstance(node, ast.Raise) and _name(node.exc) in REFUSALS:
            yield above or node
        elif _is_fence(node):
            yield node
        yield from _fences(node, inner)


def _is_fence(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Compare):
        plain = not any(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops)
        return plain and any(_name(part) in MARKS for part in ast.walk(node))
    if isinstance(node, ast.Attribute):
        return node.attr == "has_ended"
    return isinstance(node, ast.Call) and bool(_CHECK.fullmatch(_name(node) or ""))


def _name(node: ast.AST | None) -> str | None:
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
