"""Conditions: CEL (https://cel.dev) over outputs and input, bounded, compiled once.

CEL has no loops, no functions of its own and no I/O. The official library bounds recursion and
iterations; refused on top of that are nested comprehensions (they multiply time) and more than one
`map` (each can double the data). That is not enough for a loop that others wait for: a regular
expression of 40 characters takes a minute for a MB of text. So each condition knows up to how many
bytes of values it is provably cheap (`inline_bytes`); beyond that, and for those that never are,
the engine has it evaluated elsewhere, in a process with limits (docs/decisions/017).

What is compiled is rewritten so that every condition of every workflow has the same few variables
(a CEL environment is costly to make): `vip.result` becomes `nodes["vip"].result`, and each
reference of the older spelling `"{{ vip.result }} == True"` an item of a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from penstock.definition.template import (
    Missing,
    Reference,
    Scope,
    TemplateError,
    Text,
    look_up,
    opened,
    parse_text,
    whole,
)

CONDITION_CHARACTERS_MAX = 4000
# As CEL's own lexer has them: a quote in a comment, or the end of a raw string, must not hide a
# part of the program.
TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)"""
    r"""|(?P<string>[bB]?(?:[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n\r]*"|'[^'\n\r]*')"""
    r"""|\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'))"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<number>\d\w*(?:\.\d\w*)?)|(?P<other>.)""",
    re.DOTALL,
)
COMPREHENSIONS = frozenset({"all", "exists", "exists_one", "map", "filter"})
PROGRAMS_MAX, PROGRAMS_CHARACTERS_MAX = 2000, 64 * 1024
"""How many compiled programs are cached, and how long they are together: one takes up to 1 KB for
each character.
"""
INLINE_BYTES, INLINE_LOOP_BYTES = 16 * 1024, 2 * 1024
"""Up to how many bytes of values a cheap condition is evaluated at once; the second if it goes
through a list.
"""
VALUE_BYTES = 16
INLINE_TOKENS_MAX, INLINE_CALLS_MAX, INLINE_ADDITIONS_MAX = 200, 16, 4
CHEAP_FUNCTIONS = frozenset(
    {
        "bool",
        "double",
        "duration",
        "dyn",
        "has",
        "int",
        "size",
        "string",
        "timestamp",
        "type",
        "uint",
    }
)
CHEAP_METHODS = frozenset({"contains", "endsWith", "size", "startsWith"})
CHEAP_LOOPS = frozenset({"all", "exists", "exists_one", "filter", "map"})
INLINE_MAP_BYTES, INLINE_MAP_TOKENS_MAX = 1024, 60
"""`map` makes a new value for each item, as large as its program says: of both there must be
little.
"""
CONSTANTS = frozenset({"true", "false", "null", "in"})
REFERENCES = "__references"
VARIABLES = ("execution", "input", "nodes", "params", REFERENCES)
PYTHON_WORDS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "and": "&&",
    "or": "||",
    "not": "!",
}
NAMED_NODE = re.compile(r"""\s*\[\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]""")
DOTTED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)+")
FUNCTIONS = (
    "size, has, contains, startsWith, endsWith, matches, int, double and string, among others"
)
KINDS = {
    "INT": "a number",
    "UINT": "a number",
    "DOUBLE": "a number",
    "STRING": "text",
    "LIST": "a list",
    "MAP": "an object",
    "NULL": "null",
}
INTEGER_MAX = 2**63 - 1
PLAIN_WORDS = (
    (r"^Syntax error: ", ""),
    (r"token recognition error at: '(.*?)\s*'$", r"'\1' isn't expected here"),
    (r"(?:mismatched|extraneous) input ('.*?') expecting .*$", r"\1 isn't expected here"),
    (r"'<EOF>'", "the end"),
    (
        r"^found no matching overload for '_?([^_']+).*?' applied to '(\(.*\))'$",
        r"\1 can't be used with \2",
    ),
    (r"^No matching overloads found : _?([^_(]+)[^(]*(\(.*\))$", r"\1 can't be used with \2"),
    (r"^Exceeded max recursion depth of (\d+).*$", r"it is nested deeper than \1 levels"),
    (r"^Expression recursion limit exceeded. limit: (\d+)$", r"it is nested deeper than \1 levels"),
    (r"^Iteration budget exceeded$", "it looks at more than 10,000 items"),
    (r"^Key not found in map : ", "there is no key "),
    (r"^Index error: index=(-?\d+) size=(\d+)$", r"there is no item \1 in a list of \2"),
    (r"^invalid int literal$", "an integer must fit in 64 bits"),
)
"""What CEL says about its grammar, in words about the condition."""


Paths: TypeAlias = dict[str, Any]
"""What of a value is looked at: by key, what of that; an empty one means all of it."""


class Condition(msgspec.Struct, frozen=True):
    source: str
    program: str
    """The CEL that is run."""
    nodes: tuple[str, ...]
    """What `nodes` must hold."""
    templates: tuple[Reference, ...]
    """The references of the older spelling."""
    paths: Paths
    """What the program looks at, by variable: converting a value for CEL costs as much as the value
    is large.
    """
    inline_bytes: int
    """Up to how many bytes of values it is provably cheap; 0 if it never is."""

    @property
    def references(self) -> frozenset[str]:
        return frozenset(
            [*self.nodes, *(piece.name for piece in self.templates if piece.kind == "node")]
        )

    @property
    def uses_input(self) -> bool:
        named = "input" in self.paths or "params" in self.paths
        return named or any(piece.kind == "input" for piece in self.templates)

    @property
    def is_compiled(self) -> bool:
        return (self.program, VARIABLES) in _programs

    def evaluate(self, scope: Scope) -> bool:
        """Raises `Missing` with a text for the user when there is no boolean to be had."""
        return self.decide(self.bind(scope), scope)

    def bind(self, scope: Scope) -> dict[str, Any]:
        """The values that the program looks at, and no others. Raises `Missing`."""
        paths = self.paths
        nodes = paths.get("nodes", {})
        return {
            "input": narrowed(scope.input, paths["input"]) if "input" in paths else None,
            "params": narrowed(scope.input, paths["params"]) if "params" in paths else None,
            "execution": dict(scope.execution),
            "nodes": {
                node_id: self._bind_node(node_id, nodes.get(node_id, {}), scope)
                for node_id in self.nodes
            },
            REFERENCES: [whole(look_up(reference, scope)) for reference in self.templates],
        }

    def _bind_node(self, node_id: str, paths: Paths, scope: Scope) -> Any:
        return narrowed(with_aliases(opened(scope.output(node_id)), scope.aliases(node_id)), paths)

    def decide(self, values: dict[str, Any] | Converted, scope: Scope) -> bool:
        """As `evaluate`, with values that are bound."""
        failed, result = (
            values.run(self) if isinstance(values, Converted) else _run(self.program, values)
        )
        if failed:
            reason = _reason(result, self.source, self._looked_in(scope))
            raise Missing(f"{_shown(self.source)} can't be evaluated: {reason}")
        if (kind := _kind(result)) != "BOOL":
            # only a small value is shown: turning a list into Python's can take far more memory
            # than CEL needed for it
            small = kind in ("INT", "UINT", "DOUBLE", "STRING", "NULL")
            given = (
                json.dumps(result.plain_value(), ensure_ascii=False)[:60]
                if small
                else KINDS.get(kind, kind.lower())
            )
            raise Missing(f"{_shown(self.source)} gave {given}; it must give true or false")
        return bool(result.plain_value())

    def _looked_in(self, scope: Scope) -> dict[str, Any]:
        """Everything that was there to look at, for a hint."""
        found: dict[str, Any] = (
            {"input": scope.input, "params": scope.input} if self.uses_input else {}
        )
        return found | {
            node_id: with_aliases(opened(scope.output(node_id)), scope.aliases(node_id))
            for node_id in self.nodes
        }


class Converted:
    """Values that many conditions look at, converted for CEL once: that costs far more than most conditions.

    Not for conditions with `templates`, each of which has values of its own.
    """

    def __init__(self, conditions: Iterable[Condition], scope: Scope) -> None:
        self._conditions, self._scope = list(conditions), scope
        self._activations: dict[bool, Any] = {}

    def run(self, condition: Condition) -> tuple[bool, Any]:
        program = cel_program(condition.program, VARIABLES)
        failed, result = _evaluate(program, activation=self._activation(fit_integers=False))
        if failed and "out of range" in str(result):
            return _evaluate(program, activation=self._activation(fit_integers=True))
        return failed, result

    def _activation(self, *, fit_integers: bool) -> Any:
        if fit_integers not in self._activations:
            values = self._bind()
            values = _fit_integers(values) if fit_integers else values
            self._activations[fit_integers] = _environment(VARIABLES).Activation(values)
        return self._activations[fit_integers]

    def _bind(self) -> dict[str, Any]:
        paths: Paths = {}
        for condition in self._conditions:
            paths = merged(paths, condition.paths)
        nodes = tuple(paths.get("nodes", {}))
        return Condition("", "", nodes, (), paths, 0).bind(self._scope)


def merged(one: Paths, other: Paths) -> Paths:
    """What either looks at."""
    found = dict(one)
    for key, inner in other.items():
        is_whole = key in found and not (found[key] and inner)
        found[key] = {} if is_whole else merged(found.get(key, {}), inner)
    return found


def narrowed(value: Any, paths: Paths) -> Any:
    """Only what of a value is looked at."""
    if not paths:
        return whole(value)
    value = opened(value)
    if not isinstance(value, dict):
        return whole(value)
    return {key: narrowed(value[key], inner) for key, inner in paths.items() if key in value}


def size_of(value: Any, limit: int) -> int:
    """About how many bytes a value takes; counting ends above the limit.

    The smallest value counts too.
    """
    size, stack = 0, [value]
    while stack and size <= limit:
        item = stack.pop()
        size += VALUE_BYTES
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, dict):
            size += sum(map(len, islice(item, limit)))
            stack.extend(islice(item.values(), limit))
        elif isinstance(item, list):
            stack.extend(islice(item, limit))
    return size


def with_aliases(value: Any, aliases: Mapping[str, str]) -> Any:
    """So that `llm.text` works in a condition as it does in a template."""
    if not isinstance(value, dict):
        return value
    return {**{alias: value[key] for alias, key in aliases.items() if key in value}, **value}


def compile_condition(source: str, known: Collection[str]) -> Condition:
    """Raises `TemplateError` with a code and a text for the user."""
    if len(source) > CONDITION_CHARACTERS_MAX:
        message = f"the condition has {len(source):,} characters; the limit is {CONDITION_CHARACTERS_MAX:,}"
        raise TemplateError("malformed_condition", message)
    plain, templates = _without_braces(source, known) if "{{" in source else (source, ())
    program, nodes = _with_nodes(plain, known)
    try:
        kind = _type_name(cel_program(program, VARIABLES).return_type())
    except ValueError as error:
        raise _explain(_syntax_error(plain) or str(error), source, plain) from None
    if kind not in ("BOOL", "DYN"):
        message = (
            f"{_shown(source)} gives {KINDS.get(kind, kind.lower())}; it must give true or false"
        )
        raise TemplateError("malformed_condition", message)
    return Condition(
        source, program, tuple(sorted(nodes)), templates, looked_at(program), inline_bytes(program)
    )


def _without_braces(source: str, known: Collection[str]) -> tuple[str, tuple[Reference, ...]]:
    references: list[Reference] = []
    program = ""
    for piece in parse_text(source, known):
        if isinstance(piece, str):
            program += piece
        elif piece.kind == "secret":
            raise TemplateError(
                "malformed_condition", f"{piece.text}: conditions can't use secrets"
            )
        else:
            name = f"{REFERENCES}[{len(references)}]"
            references.append(piece)
            # quotes around a reference ('{{ a.b }}' == 'x') belong to the older spelling too
            program = program[:-1] + name + "\0" if program.endswith(("'", '"')) else program + name
    program = re.sub(r"\0['\"]?", "", program)
    return "".join(
        PYTHON_WORDS.get(token[0], token[0]) for token in TOKEN.finditer(program)
    ), tuple(references)


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
                what = (
                    "map twice" if maps > 1 else "map, filter, all or exists inside another of them"
                )
                raise TemplateError(
                    "malformed_condition",
                    f"a condition can't use {what}; put a transform before it",
                )
            parens.append(inner)
        elif text == ")" and parens:
            parens.pop()
        elif (
            token["name"]
            and before != "."
            and text not in own
            and not rest.lstrip().startswith("(")
        ):
            rewritten[-1] = _note_name(text, rest, known, nodes)
        before = before + text if before == "." else text
    return "".join(rewritten), nodes


PLACEHOLDER = re.compile("\0([0-9]+)\0")
LITERAL = re.compile(r"""([rRbB]*)(\"{3}|'{3}|"|')(.*)\2\Z""", re.DOTALL)


def bind_references(
    expression: str, known: Collection[str], variables: Any
) -> tuple[str, dict[str, Text]]:
    """A CEL expression with a variable for each `{{ reference }}` in it, and what those variables are.

    What an output holds is data: pasted into the expression, it would be read as a program. A text in quotes that has
    references in it becomes one variable, which is that text. `variables` are those that are taken.
    """
    if not isinstance(variables, dict):
        raise TemplateError(
            "malformed_template", 'variables must be an object, such as {"limit": 3}'
        )
    pieces = parse_text(expression, known)
    if "\0" in expression:
        raise TemplateError("malformed_template", "an expression can't have a NUL character in it")
    marked = "".join(
        piece if isinstance(piece, str) else f"\0{i}\0" for i, piece in enumerate(pieces)
    )
    bound: dict[str, Text] = {}

    def variable(text: Text) -> str:
        number = len(bound)
        while (name := f"__{number}") in variables or name in bound:
            number += 1
        bound[name] = text
        return name

    rewritten = "".join(
        variable(_quoted_text(token[0], pieces))
        if token["string"] and "\0" in token[0]
        else token[0]
        for token in TOKEN.finditer(marked)
    )
    return PLACEHOLDER.sub(lambda mark: variable([pieces[int(mark[1])]]), rewritten), bound


def _quoted_text(literal: str, pieces: Text) -> Text:
    """What a string literal with placeholders in it says."""
    match = LITERAL.match(literal)
    is_raw = match is not None and match[1] in ("r", "R")
    if match is None or (match[1] and not is_raw) or ("\\" in match[3] and not is_raw):
        message = "a reference can't stand in a text with escapes or in bytes; write 'text ' + string({{ … }}) instead"
        raise TemplateError("malformed_template", message)
    parts = PLACEHOLDER.split(match[3])
    # the first one may be empty: then it keeps a single reference from giving anything but text
    return [
        part if i % 2 == 0 else pieces[int(part)] for i, part in enumerate(parts) if part or i == 0
    ]


def looked_at(program: str) -> Paths:
    """By variable, the keys that follow it: `input.a.b && nodes["x"].n` looks at {input: {a: {b}}, nodes: {x: {n}}}.

    A variable that stands alone, or is followed by an index or a method, is looked at as a whole.
    """
    tokens = [token for token in TOKEN.finditer(program) if not token["space"]]
    texts = [token[0] for token in tokens]
    found: Paths = {}
    wholes: list[list[str]] = []
    for i, token in enumerate(tokens):
        is_root = token["name"] and token[0] in VARIABLES and (i == 0 or texts[i - 1] != ".")
        if not is_root:
            continue
        path, end = [token[0]], i + 1
        if (
            token[0] == "nodes"
            and texts[end : end + 1] == ["["]
            and texts[end + 2 : end + 3] == ["]"]
        ):
            path.append(_unquote(texts[end + 1]))
            end += 3
        while texts[end : end + 1] == ["."] and end + 1 < len(tokens) and tokens[end + 1]["name"]:
            if texts[end + 2 : end + 3] == ["("]:
                break  # a method
            path.append(texts[end + 1])
            end += 2
        branch = found
        for key in path:
            branch = branch.setdefault(key, {})
        wholes.append(path)
    for path in wholes:
        _prune(found, path)
    return found


def _prune(paths: Paths, path: list[str]) -> None:
    """What is looked at as a whole needs no keys."""
    branch = paths
    for key in path[:-1]:
        if key not in branch:
            return  # a shorter path has been there
        branch = branch[key]
    if path[-1] in branch:
        branch[path[-1]] = {}


def inline_bytes(program: str) -> int:
    """Up to how many bytes of values a program takes a few milliseconds at most, whatever they are; 0 for none.

    Each operation then costs no more than a look at all of the values: no regular expressions, nothing that builds
    much, few calls. A `contains` is the dearest of them.
    """
    tokens = [token for token in TOKEN.finditer(program) if not token["space"]]
    if len(tokens) > INLINE_TOKENS_MAX:
        return 0
    texts = [token[0] for token in tokens]
    additions, calls, loops = texts.count("+"), 0, 0
    for i, text in enumerate(texts):
        if text != "(" or i == 0 or not tokens[i - 1]["name"]:
            continue
        calls += 1
        name, is_method = texts[i - 1], texts[i - 2 : i - 1] == ["."]
        if is_method and name in CHEAP_LOOPS:
            loops += 1  # one inside another is one too many
        elif name not in (CHEAP_METHODS if is_method else CHEAP_FUNCTIONS):
            return 0
    if (
        calls > INLINE_CALLS_MAX
        or additions > INLINE_ADDITIONS_MAX
        or loops > 1
        or (loops and additions)
    ):
        return 0
    if loops and "map" in texts:
        return INLINE_MAP_BYTES if len(tokens) <= INLINE_MAP_TOKENS_MAX else 0
    return INLINE_LOOP_BYTES if loops else INLINE_BYTES


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
        raise TemplateError(
            "unknown_reference", f"the condition refers to {name!r}, which isn't a node", name
        )
    nodes.add(name)
    return text


def _unquote(literal: str) -> str:
    inner = re.sub(
        r"\\.|\"", lambda part: {"\\'": "'", '"': '\\"'}.get(part[0], part[0]), literal[1:-1]
    )
    try:
        return str(json.loads(f'"{inner}"'))
    except ValueError:
        raise TemplateError(
            "malformed_condition", f"nodes[{literal}]: use only JSON's escapes in an id"
        ) from None


def _comprehension_variables(program: str) -> set[str]:
    return set(
        re.findall(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,", program)
    )


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
        return TemplateError(
            "unknown_reference", f"the condition refers to {name!r}, which isn't a node", name
        )
    found = re.search(r"ERROR: <input>:-?\d+:(-?\d+): (.*?)(?:\n|$)", error)
    column = (
        f" (column {found[1]})" if found and source == program and "Syntax error" in error else ""
    )
    text = _plain_words(found[2] if found else error)
    return TemplateError("malformed_condition", f"{_shown(source)} can't be read: {text}{column}")


def _plain_words(error: str) -> str:
    text = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", error.split("\n", maxsplit=1)[0])
    for pattern, replacement in PLAIN_WORDS:
        text = re.sub(pattern, replacement, text)
    return text[:300]


@lru_cache(maxsize=16)
def _environment(names: tuple[str, ...]) -> Any:
    from cel_expr_python import cel  # noqa: PLC0415 -- only documents with conditions pay for it

    return cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN))


class _Programs(dict[tuple[str, tuple[str, ...]], Any]):
    """Compiled programs, the oldest first.

    Threads may add some at once: then the count drifts for a while.
    """

    characters = 0

    def add(self, key: tuple[str, tuple[str, ...]], compiled: Any) -> None:
        self.characters += len(key[0])
        self[key] = compiled
        while len(self) > 1 and (
            len(self) > PROGRAMS_MAX or self.characters > PROGRAMS_CHARACTERS_MAX
        ):
            oldest = next(iter(list(islice(self, 1))))
            self.pop(oldest, None)
            self.characters -= len(oldest[0])
        if len(self) == 1:
            self.characters = len(key[0])


_programs = _Programs()


def cel_program(program: str, names: tuple[str, ...]) -> Any:
    """Compiled, and cached for a while.

    Raises `ValueError` for an expression that can't be compiled.
    """
    key = (program, names)
    compiled = _programs.get(key)
    if compiled is None:
        try:
            compiled = _environment(names).compile(program)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
        _programs.add(key, compiled)
    return compiled


def evaluate_cel(program: str, values: dict[str, Any]) -> Any:
    """The plain value. Raises `Missing` for an error while evaluating."""
    failed, result = _run(program, values)
    if failed:
        raise Missing(
            f"the expression {program!r} can't be evaluated: {_reason(result, program, values)}"
        )
    return result.plain_value()


def _run(program: str, values: dict[str, Any]) -> tuple[bool, Any]:
    """Whether it failed, and CEL's value or what went wrong."""
    compiled = cel_program(program, tuple(sorted(values)))
    failed, result = _evaluate(compiled, data=values)
    if failed and "out of range" in str(result):
        return _evaluate(compiled, data=_fit_integers(values))
    return failed, result


def _evaluate(compiled: Any, **values: Any) -> tuple[bool, Any]:
    try:
        result = compiled.eval(**values)
        failed = _kind(result) == "ERROR"
        return failed, result.plain_value() if failed else result
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
        path, *steps = (part.strip() for part in dotted[0].split("."))
        value = opened(values.get(path))
        for step in steps:
            if not isinstance(value, dict) or step not in value:
                break
            path, value = f"{path}.{step}", opened(value[step])
        else:
            continue
        if isinstance(value, dict) and step == missing:
            return f"; {path} has: {', '.join(key[:60] for key in islice(value, 20)) or 'none'}"
    return ""


def _fit_integers(value: Any) -> Any:
    """CEL's integers have 64 bits; larger ones become numbers with a fraction, as JSON readers elsewhere do."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -INTEGER_MAX <= value <= INTEGER_MAX else float(value)
    if isinstance(value, dict):
        return {key: _fit_integers(item) for key, item in value.items()}
    return [_fit_integers(item) for item in value] if isinstance(value, list) else value
