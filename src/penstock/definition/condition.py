"""Conditions: CEL (https://cel.dev) over outputs and input, bounded, compiled once.

CEL has no loops, no functions of its own and no I/O. The official library bounds recursion and iterations and matches
regular expressions in linear time; refused on top of that are nested comprehensions (they multiply time) and more than
one `map` (each can double the data).

What is compiled is rewritten so that every condition of every workflow has the same few variables (a CEL environment
is costly to make): `vip.result` becomes `nodes["vip"].result`, and each reference of the older spelling
`"{{ vip.result }} == True"` an item of a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from penstock.definition.template import Missing, Reference, Scope, TemplateError, look_up, parse_text

MAX_LENGTH = 4000
# As CEL's own lexer has them: a quote in a comment, or the end of a raw string, must not hide a part of the program.
TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)"""
    r"""|(?P<string>[bB]?(?:[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n\r]*"|'[^'\n\r]*')"""
    r"""|\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'))"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<number>\d\w*(?:\.\d\w*)?)|(?P<other>.)""",
    re.DOTALL,
)
COMPREHENSIONS = frozenset({"all", "exists", "exists_one", "map", "filter"})
CONSTANTS = frozenset({"true", "false", "null", "in"})
REFERENCES = "__references"
VARIABLES = ("execution", "input", "nodes", "params", REFERENCES)
PYTHON_WORDS = {"True": "true", "False": "false", "None": "null", "and": "&&", "or": "||", "not": "!"}
NAMED_NODE = re.compile(r"""\s*\[\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]""")
DOTTED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)+")
FUNCTIONS = "size, has, contains, startsWith, endsWith, matches, int, double and string, among others"
KINDS = {"INT": "a number", "UINT": "a number", "DOUBLE": "a number", "STRING": "text", "LIST": "a list",
         "MAP": "an object", "NULL": "null"}  # fmt: skip
LARGEST_INT = 2**63 - 1
PLAIN_WORDS = (
    (r"^Syntax error: ", ""),
    (r"token recognition error at: '(.*?)\s*'$", r"'\1' isn't expected here"),
    (r"(?:mismatched|extraneous) input ('.*?') expecting .*$", r"\1 isn't expected here"),
    (r"'<EOF>'", "the end"),
    (r"^found no matching overload for '_?([^_']+).*?' applied to '(\(.*\))'$", r"\1 can't be used with \2"),
    (r"^No matching overloads found : _?([^_(]+)[^(]*(\(.*\))$", r"\1 can't be used with \2"),
    (r"^Exceeded max recursion depth of (\d+).*$", r"it is nested deeper than \1 levels"),
    (r"^Expression recursion limit exceeded. limit: (\d+)$", r"it is nested deeper than \1 levels"),
    (r"^Iteration budget exceeded$", "it looks at more than 10,000 items"),
    (r"^Key not found in map : ", "there is no key "),
    (r"^Index error: index=(-?\d+) size=(\d+)$", r"there is no item \1 in a list of \2"),
    (r"^invalid int literal$", "an integer must fit in 64 bits"),
)
"""What CEL says about its grammar, in words about the condition."""


class Condition(msgspec.Struct, frozen=True):
    source: str
    program: str
    """The CEL that is run."""
    nodes: tuple[str, ...]
    """What `nodes` must hold."""
    templates: tuple[Reference, ...]
    """The references of the older spelling."""

    @property
    def references(self) -> frozenset[str]:
        return frozenset([*self.nodes, *(piece.name for piece in self.templates if piece.kind == "node")])

    def evaluate(self, scope: Scope) -> bool:
        """Raises `Missing` with a text for the user when there is no boolean to be had."""
        values = self._bind(scope)
        failed, result = _run(self.program, values)
        if failed:
            looked_in = {**values, **values["nodes"]}
            raise Missing(f"{_shown(self.source)} can't be evaluated: {_reason(result, self.source, looked_in)}")
        if (kind := _kind(result)) != "BOOL":
            # only a small value is shown: turning a list into Python's can take far more memory than CEL needed for it
            small = kind in ("INT", "UINT", "DOUBLE", "STRING", "NULL")
            given = (
                json.dumps(result.plain_value(), ensure_ascii=False)[:60] if small else KINDS.get(kind, kind.lower())
            )
            raise Missing(f"{_shown(self.source)} gave {given}; it must give true or false")
        return bool(result.plain_value())

    def _bind(self, scope: Scope) -> dict[str, Any]:
        return {
            "input": scope.input,
            "params": scope.input,
            "execution": dict(scope.execution),
            "nodes": {name: with_aliases(scope.output(name), scope.aliases(name)) for name in self.nodes},
            REFERENCES: [look_up(reference, scope) for reference in self.templates],
        }


def with_aliases(value: Any, aliases: Mapping[str, str]) -> Any:
    """So that `llm.text` works in a condition as it does in a template."""
    if not isinstance(value, dict):
        return value
    return {**{alias: value[key] for alias, key in aliases.items() if key in value}, **value}


def compile_condition(source: str, known: Collection[str]) -> Condition:
    """Raises `TemplateError` with a code and a text for the user."""
    if len(source) > MAX_LENGTH:
        message = f"the condition has {len(source):,} characters; the limit is {MAX_LENGTH:,}"
        raise TemplateError("malformed_condition", message)
    plain, templates = _without_braces(source, known) if "{{" in source else (source, ())
    program, nodes = _with_nodes(plain, known)
    try:
        kind = _type_name(cel_program(program, VARIABLES).return_type())
    except ValueError as error:
        raise _explain(_syntax_error(plain) or str(error), source, plain) from None
    if kind not in ("BOOL", "DYN"):
        message = f"{_shown(source)} gives {KINDS.get(kind, kind.lower())}; it must give true or false"
        raise TemplateError("malformed_condition", message)
    return Condition(source, program, tuple(sorted(nodes)), templates)


def _without_braces(source: str, known: Collection[str]) -> tuple[str, tuple[Reference, ...]]:
    references: list[Reference] = []
    program = ""
    for piece in parse_text(source, known):
        if isinstance(piece, str):
            program += piece
        elif piece.kind == "secret":
            raise TemplateError("malformed_condition", f"{piece.text}: conditions can't use secrets")
        else:
            name = f"{REFERENCES}[{len(references)}]"
            references.append(piece)
            # quotes around a reference ('{{ a.b }}' == 'x') belong to the older spelling too
            program = program[:-1] + name + "\0" if program.endswith(("'", '"')) else program + name
    program = re.sub(r"\0['\"]?", "", program)
    return "".join(PYTHON_WORDS.get(token[0], token[0]) for token in TOKEN.finditer(program)), tuple(references)


def _with_nodes(program: str, known: Collection[str]) -> tuple[str, set[str]]:
    """Each node's name as `nodes["name"]`, and which they are; refuses what could take time or memory without bound."""
    nodes: set[str] = set()
    rewritten: list[str] = []
    own = CONSTANTS | {REFERENCES} | _comprehension_variables(program)
    before = ""
    parens: list[bool] = []
    maps = 0
    for token in TOKEN.finditer(program):
        text, rest = token[0], program[token.end() :]
        rewritten.append(text)
        if token["space"]:
            continue
        if text == "(":
            inner = before.startswith(".") and before[1:] in COMPREHENSIONS
            maps += before == ".map"
            if (inner and any(parens)) or maps > 1:
                what = "map twice" if maps > 1 else "map, filter, all or exists inside another of them"
                raise TemplateError("malformed_condition", f"a condition can't use {what}; put a transform before it")
            parens.append(inner)
        elif text == ")" and parens:
            parens.pop()
        elif token["name"] and before != "." and text not in own and not rest.lstrip().startswith("("):
            rewritten[-1] = _note_name(text, rest, known, nodes)
        before = before + text if before == "." else text
    return "".join(rewritten), nodes


def _note_name(text: str, rest: str, known: Collection[str], nodes: set[str]) -> str:
    if text == "secrets":
        raise TemplateError("malformed_condition", "conditions can't use secrets")
    if text != "nodes":
        if text not in known:
            return text
        nodes.add(text)
        return f'nodes["{text}"]'
    match = NAMED_NODE.match(rest)
    if match is None:
        message = 'in a condition, nodes must be followed by an id in quotes: nodes["its id"]'
        raise TemplateError("malformed_condition", message)
    if (name := _unquote(match[1])) not in known:
        raise TemplateError("unknown_reference", f"the condition refers to {name!r}, which isn't a node", name)
    nodes.add(name)
    return text


def _unquote(literal: str) -> str:
    inner = re.sub(r"\\.|\"", lambda part: {"\\'": "'", '"': '\\"'}.get(part[0], part[0]), literal[1:-1])
    try:
        return str(json.loads(f'"{inner}"'))
    except ValueError:
        raise TemplateError("malformed_condition", f"nodes[{literal}]: use only JSON's escapes in an id") from None


def _comprehension_variables(program: str) -> set[str]:
    return set(re.findall(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,", program))


def _shown(source: str) -> str:
    return f"the condition {source if len(source) <= 80 else source[:79] + '…'!r}"  # noqa: PLR2004 -- fits on a line


def _syntax_error(program: str) -> str:
    """What is wrong with the grammar, in the words and columns of what was written."""
    try:
        cel_program(program, VARIABLES)
    except ValueError as error:
        return str(error) if "Syntax error" in str(error) else ""
    return ""


def _explain(error: str, source: str, program: str) -> TemplateError:
    """CEL's own texts are about its grammar; these are about the condition."""
    for token in TOKEN.finditer(program):
        if token["name"] and token[0] in PYTHON_WORDS:
            message = f"{_shown(source)} can't be read: write {PYTHON_WORDS[token[0]]} instead of {token[0]}"
            return TemplateError("malformed_condition", message)
    undeclared = re.search(r"undeclared reference to '([^'.]+)", error)
    if undeclared and re.search(rf"\b{re.escape(undeclared[1])}\s*\(", program):
        message = f"{_shown(source)} calls {undeclared[1]}(), which CEL doesn't have; there are {FUNCTIONS}"
        return TemplateError("malformed_condition", message)
    if undeclared:
        name = undeclared[1]
        return TemplateError("unknown_reference", f"the condition refers to {name!r}, which isn't a node", name)
    found = re.search(r"ERROR: <input>:-?\d+:(-?\d+): (.*?)(?:\n|$)", error)
    place = f" (column {found[1]})" if found and source == program and "Syntax error" in error else ""
    text = _plain_words(found[2] if found else error)
    return TemplateError("malformed_condition", f"{_shown(source)} can't be read: {text}{place}")


def _plain_words(error: str) -> str:
    text = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", error.split("\n", maxsplit=1)[0])
    for pattern, replacement in PLAIN_WORDS:
        text = re.sub(pattern, replacement, text)
    return text[:300]


@lru_cache(maxsize=1024)
def _environment(names: tuple[str, ...]) -> Any:
    from cel_expr_python import cel  # noqa: PLC0415 -- only documents with conditions pay for it

    return cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN))


@lru_cache(maxsize=10_000)
def cel_program(program: str, names: tuple[str, ...]) -> Any:
    """Raises `ValueError` for an expression that can't be compiled."""
    try:
        return _environment(names).compile(program)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def evaluate_cel(program: str, values: dict[str, Any]) -> Any:
    """The plain value. Raises `Missing` for an error while evaluating."""
    failed, result = _run(program, values)
    if failed:
        raise Missing(f"the expression {program!r} can't be evaluated: {_reason(result, program, values)}")
    return result.plain_value()


def _run(program: str, values: dict[str, Any]) -> tuple[bool, Any]:
    """Whether it failed, and CEL's value or what went wrong."""
    compiled = cel_program(program, tuple(sorted(values)))
    failed, result = _evaluate(compiled, values)
    if failed and "out of range" in str(result):
        return _evaluate(compiled, _fit_integers(values))
    return failed, result


def _evaluate(compiled: Any, values: dict[str, Any]) -> tuple[bool, Any]:
    try:
        result = compiled.eval(data=values)
        failed = _kind(result) == "ERROR"
        return failed, result.plain_value() if failed else result
    except MemoryError:
        return True, "it needs too much memory"
    except RuntimeError as error:
        return True, error


def _kind(result: Any) -> str:
    return _type_name(result.type())


def _type_name(kind: Any) -> str:
    return str(kind.name()).partition("<")[0]


def _reason(error: object, program: str, values: dict[str, Any]) -> str:
    text = _plain_words(str(error))
    missing = re.match(r'there is no key "(.*)"$', text)
    return text + (_keys_there(missing[1], program, values) if missing else "")


def _keys_there(missing: str, program: str, values: dict[str, Any]) -> str:
    """CEL says which key it didn't find; this finds where in the program it was looked for."""
    for dotted in DOTTED.finditer(program):
        place, *steps = (part.strip() for part in dotted[0].split("."))
        value = values.get(place)
        for step in steps:
            if not isinstance(value, dict) or step not in value:
                break
            place, value = f"{place}.{step}", value[step]
        else:
            continue
        if isinstance(value, dict) and step == missing:
            return f"; {place} has: {', '.join(key[:60] for key in islice(value, 20)) or 'none'}"
    return ""


def _fit_integers(value: Any) -> Any:
    """CEL's integers have 64 bits; larger ones become numbers with a fraction, as JSON readers elsewhere do."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -LARGEST_INT <= value <= LARGEST_INT else float(value)
    if isinstance(value, dict):
        return {key: _fit_integers(item) for key, item in value.items()}
    return [_fit_integers(item) for item in value] if isinstance(value, list) else value
