"""Where in a text a problem is: the line and column of its path.

Only looked up once there is a problem. A path that isn't in the text (a field that is missing) has
the position of the part that is. A problem of the whole document has the position where it begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from penstock.definition.parse import COMMENT_LINE
from penstock.definition.problems import PATH_CHARACTERS_MAX, Problem, path_to

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}:,]|[^\s"\[\]{}:,]+')
PLACELESS_CODES = frozenset({"more_problems", "too_large", "unreadable"})
"""Codes of problems that, without a path, aren't about a place in the text."""
STEP_START = re.compile(r"[.\[]")


def located(problems: Iterable[Problem], text: str | bytes, form: str) -> list[Problem]:
    """The problems with the line and column of each.

    The text can be parsed, or its problems have their positions already.
    """
    problems = list(problems)
    paths = {_path(problem) for problem in problems if _is_placed(problem)}
    if not paths:
        return problems
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "replace")
    wanted = {prefix for path in paths for prefix in _prefixes(path)}
    offsets = _yaml_offsets(text, wanted) if form == "yaml" else _json_offsets(text, wanted)
    return [_with_position(problem, text, offsets) for problem in problems]


def _with_position(problem: Problem, text: str, offsets: dict[str, int]) -> Problem:
    if not _is_placed(problem):
        return problem
    for prefix in _prefixes(_path(problem)):
        if prefix in offsets:
            line, column = line_and_column(text, offsets[prefix])
            return msgspec.structs.replace(problem, line=line, column=column)
    return problem


def _is_placed(problem: Problem) -> bool:
    """Whether the problem has a place in the text that has to be looked up."""
    return problem.line is UNSET and bool(problem.path or problem.code not in PLACELESS_CODES)


def _path(problem: Problem) -> str:
    return problem.path.removesuffix("…")


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _prefixes(path: str) -> Iterator[str]:
    """The path, and the paths of what is around it, the longest first."""
    path = path[:PATH_CHARACTERS_MAX]
    yield path
    for step in reversed(list(STEP_START.finditer(path))):
        if step.start():
            yield path[: step.start()]
    if path:
        yield ""


def _json_offsets(text: str, wanted: set[str]) -> dict[str, int]:
    """Of the wanted paths that are in the text: where their key or, in a list, their item is."""
    # as many characters as before, so that offsets stay as they are
    text = COMMENT_LINE.sub(lambda comment: " " * len(comment[0]), text)
    offsets: dict[str, int] = {}
    for path, offset in _json_members(text):
        if path in wanted:
            offsets.setdefault(path, offset)
    return offsets


class _Open(msgspec.Struct):
    """An object or list in which the walk is."""

    path: str
    is_list: bool
    next_index: int = 0


def _json_members(text: str) -> Iterator[tuple[str, int]]:
    """Each path of a text that is JSON, and where it is."""
    stack: list[_Open] = []
    expects_key = False
    path = ""
    for token in TOKEN.finditer(text):
        mark = token[0]
        if mark in ("]", "}"):
            stack.pop()
            expects_key = False
        elif mark == ",":
            expects_key = not stack[-1].is_list
        elif mark == ":":
            expects_key = False
        elif expects_key:
            path = path_to(stack[-1].path, (_plain_key(mark),))
            yield path, token.start()
        else:
            if not stack:
                yield "", token.start()
            elif stack[-1].is_list:
                path = path_to(stack[-1].path, (stack[-1].next_index,))
                stack[-1].next_index += 1
                yield path, token.start()
            if mark in ("[", "{"):
                stack.append(_Open(path if stack else "", is_list=mark == "["))
                expects_key = mark == "{"


def _plain_key(literal: str) -> str:
    try:
        return str(msgspec.json.decode(literal))
    except msgspec.MsgspecError:
        return literal.strip('"')


def _yaml_offsets(text: str, wanted: set[str]) -> dict[str, int]:
    import yaml  # noqa: PLC0415 -- PyYAML costs 50 ms

    from penstock.definition.yaml import BaseLoader  # noqa: PLC0415

    offsets: dict[str, int] = {}
    try:
        root = yaml.compose(text, Loader=BaseLoader)
    except yaml.YAMLError:
        return offsets
    if root is None:
        return offsets
    lines = _line_offsets(text)

    def offset_of(node: Any) -> int:
        line = int(node.start_mark.line)
        return lines[min(line, len(lines) - 1)] + int(node.start_mark.column)

    offsets[""] = offset_of(root)
    stack: list[tuple[str, Any]] = [("", root)]
    while stack:
        path, node = stack.pop()
        for step, key_node, value_node in _yaml_members(node):
            inner = path_to(path, (step,))
            if inner in wanted and inner not in offsets:
                offsets[inner] = offset_of(key_node)
                stack.append((inner, value_node))
    return offsets


def _yaml_members(node: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Step, the node to point at, and the value; of a mapping also what `<<` merges into it."""
    import yaml  # noqa: PLC0415

    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield index, item, item
    elif isinstance(node, yaml.MappingNode):
        merged: list[Any] = []
        for key_node, value_node in node.value:
            if key_node.tag.endswith(":merge"):
                is_list = isinstance(value_node, yaml.SequenceNode)
                merged += value_node.value if is_list else [value_node]
            else:
                yield str(key_node.value), key_node, value_node
        for base in merged:
            if isinstance(base, yaml.MappingNode):
                for key_node, value_node in base.value:
                    yield str(key_node.value), key_node, value_node


def _line_offsets(text: str) -> list[int]:
    offsets = [0]
    offsets += [match.end() for match in re.finditer(r"\r\n|[\n\r\u0085\u2028\u2029]", text)]
    return offsets
