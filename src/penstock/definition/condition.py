"""Conditions: CEL (https://cel.dev) over outputs and input, bounded, compiled once.

CEL has no loops, no functions of its own and no I/O. The official library bounds recursion and iterations and matches
regular expressions in linear time; nested comprehensions are refused here on top of that.
The older spelling `"{{ vip.result }} == True"` is read by turning each reference into a variable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from penstock.definition.problems import did_you_mean
from penstock.definition.template import Missing, Reference, Scope, TemplateError, look_up, parse_text

MAX_LENGTH = 4000
TOKEN = re.compile(
    r"""(?P<string>[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)|(?P<space>\s+)|(?P<other>.)""",
    re.DOTALL,
)
COMPREHENSIONS = frozenset({"all", "exists", "exists_one", "map", "filter"})
CONSTANTS = frozenset({"true", "false", "null", "in"})
PYTHON_WORDS = {"True": "true", "False": "false", "None": "null", "and": "&&", "or": "||", "not": "!"}
NAMED_NODE = re.compile(r"""\s*\[\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]""")
LARGEST_INT = 2**63 - 1


class Condition(msgspec.Struct, frozen=True):
    source: str
    program: str
    """The CEL that is run; differs from the source only for the older spelling."""
    nodes: tuple[str, ...]
    """Nodes that are variables by their own name."""
    named_nodes: tuple[str, ...]
    """Nodes reached as `nodes["id"]`."""
    variables: tuple[tuple[str, Reference], ...]

    @property
    def references(self) -> frozenset[str]:
        found = {reference.name for _, reference in self.variables if reference.kind == "node"}
        return frozenset(found.union(self.nodes, self.named_nodes))

    def evaluate(self, scope: Scope) -> bool:
        """Raises `Missing` with a text for the user when there is no boolean to be had."""
        value = evaluate_cel(self.program, self._bind(scope))
        if not isinstance(value, bool):
            raise Missing(f"the condition {self.source!r} gave {json.dumps(value)[:60]}; it must give true or false")
        return value

    def _bind(self, scope: Scope) -> dict[str, Any]:
        values: dict[str, Any] = {"input": scope.input, "params": scope.input, "execution": dict(scope.execution)}
        values.update((name, look_up(reference, scope)) for name, reference in self.variables)
        values.update((name, with_aliases(scope.output(name), scope.aliases(name))) for name in self.nodes)
        named = {name: with_aliases(scope.output(name), scope.aliases(name)) for name in self.named_nodes}
        return {**values, "nodes": named} if named else values


def with_aliases(value: Any, aliases: Mapping[str, str]) -> Any:
    """So that `llm.text` works in a condition as it does in a template."""
    if not isinstance(value, dict):
        return value
    return {**{alias: value[key] for alias, key in aliases.items() if key in value}, **value}


def compile_condition(source: str, known: Collection[str]) -> Condition:
    """Raises `TemplateError` with a code and a text for the user."""
    if len(source) > MAX_LENGTH:
        raise TemplateError("malformed_condition", f"a condition has at most {MAX_LENGTH:,} characters")
    program, variables = _without_braces(source, known) if "{{" in source else (source, ())
    nodes, named = _find_names(program, known, {name for name, _ in variables})
    names = tuple(sorted({*nodes, "input", "params", "execution", "nodes", *(name for name, _ in variables)}))
    try:
        cel_program(program, names)
    except ValueError as error:
        raise TemplateError(*_explain(str(error), source, known)) from None
    return Condition(source, program, tuple(sorted(nodes)), tuple(sorted(named)), variables)


def _without_braces(source: str, known: Collection[str]) -> tuple[str, tuple[tuple[str, Reference], ...]]:
    variables: list[tuple[str, Reference]] = []
    program = ""
    for piece in parse_text(source, known):
        if isinstance(piece, str):
            program += "".join(PYTHON_WORDS.get(token[0], token[0]) for token in TOKEN.finditer(piece))
        elif piece.kind == "secret":
            raise TemplateError("malformed_condition", f"{piece.text}: conditions can't use secrets")
        else:
            name = f"reference_{len(variables)}"
            variables.append((name, piece))
            # quotes around a reference ('{{ a.b }}' == 'x') belong to the older spelling too
            program = program[:-1] + name + "\0" if program.endswith(("'", '"')) else program + name
    return re.sub(r"\0['\"]?", "", program), tuple(variables)


def _find_names(program: str, known: Collection[str], bound: set[str]) -> tuple[set[str], set[str]]:
    """Which nodes the expression mentions; refuses a comprehension inside a comprehension."""
    nodes: set[str] = set()
    named: set[str] = set()
    own = set(bound) | _comprehension_variables(program)
    before = ""
    parens: list[bool] = []
    for token in TOKEN.finditer(program):
        text, after = token[0], program[token.end() :].lstrip()[:1]
        if token["space"]:
            continue
        if text == "(":
            inner = before.startswith(".") and before[1:] in COMPREHENSIONS
            if inner and any(parens):
                raise TemplateError("malformed_condition", "a comprehension (map, all, …) inside another isn't allowed")
            parens.append(inner)
        elif text == ")" and parens:
            parens.pop()
        elif token["name"] and before != "." and after != "(" and text not in CONSTANTS | own:
            _note_name(text, program[token.end() :], known, nodes, named)
        before = before + text if before == "." else text
    return nodes, named


def _note_name(text: str, rest: str, known: Collection[str], nodes: set[str], named: set[str]) -> None:
    if text in known and text not in ("nodes", "secrets"):
        nodes.add(text)
    elif text == "nodes":
        match = NAMED_NODE.match(rest)
        name = _unquote(match[1]) if match else None
        if name is None:
            raise TemplateError("malformed_condition", 'nodes must be followed by a literal id: nodes["its id"]')
        if name not in known:
            message = f"the condition refers to {name!r}, which isn't a node{did_you_mean(name, known)}"
            raise TemplateError("unknown_reference", message)
        named.add(name)


def _unquote(literal: str) -> str:
    inner = literal[1:-1].replace("\\'", "'")
    return str(json.loads(f'"{inner}"')) if literal[0] == '"' else inner


def _comprehension_variables(program: str) -> set[str]:
    return set(re.findall(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,", program))


def _explain(error: str, source: str, known: Collection[str]) -> tuple[str, str]:
    undeclared = re.search(r"undeclared reference to '([^'.]+)", error)
    if undeclared and f"{undeclared[1]}(" not in source.replace(" ", ""):
        name = undeclared[1]
        return "unknown_reference", f"the condition refers to {name!r}, which isn't a node{did_you_mean(name, known)}"
    found = re.search(r"ERROR: <input>:(\d+):(\d+): (.*?)(?:\n|$)", error)
    text = f"{found[3]} (column {found[2]})" if found else error.split("\n", maxsplit=1)[0]
    return "malformed_condition", f"the condition {source[:80]!r} can't be read: {text[:300]}"


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
    compiled = cel_program(program, tuple(sorted({*values, "nodes"})))
    failed, value = _run(compiled, values)
    if failed and "out of range" in str(value):
        failed, value = _run(compiled, _fit_integers(values))
    if failed:
        raise Missing(f"the expression {program!r} can't be evaluated: {_short(value)}")
    return value


def _run(compiled: Any, values: dict[str, Any]) -> tuple[bool, Any]:
    try:
        result = compiled.eval(data=values)
        return result.type().name() == "ERROR", result.plain_value()
    except RuntimeError as error:
        return True, error


def _short(error: object) -> str:
    return re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", str(error).split("\n")[0])[:300]


def _fit_integers(value: Any) -> Any:
    """CEL's integers have 64 bits; larger ones become numbers with a fraction, as JSON readers elsewhere do."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -LARGEST_INT <= value <= LARGEST_INT else float(value)
    if isinstance(value, dict):
        return {key: _fit_integers(item) for key, item in value.items()}
    return [_fit_integers(item) for item in value] if isinstance(value, list) else value
