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
QUOTED_CHARACTERS_MAX = 80
"""How much of a condition a message quotes."""
# As CEL's own lexer has them: a quote in a comment, or the end of a raw string, must not hide a
# part of the program.
TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)"""
    r"""|(?P<string>[bB]?(?:[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n\r]*"|'[^'\n\r]*')"""
    r"""|\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}"""
    r"""|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'))"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<number>\d\w*(?:\.\d\w*)?)|(?P<other>.)""",
    re.DOTALL,
)
COMPREHENSIONS = frozenset({"all", "exists", "exists_one", "map", "filter"})
PROGRAMS_MAX = 2000
"""How many compiled programs are cached."""
PROGRAMS_CHARACTERS_MAX = 64 * 1024
"""How long the cached programs are together: one takes up to 1 KB for each character."""
INLINE_BYTES = 16 * 1024
"""Up to how many bytes of values a cheap condition is evaluated at once."""
INLINE_LOOP_BYTES = 2 * 1024
"""The same for a condition that goes through a list."""
VALUE_BYTES = 16
INLINE_TOKENS_MAX = 200
INLINE_CALLS_MAX = 16
INLINE_ADDITIONS_MAX = 4
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
INLINE_MAP_BYTES = 1024
INLINE_MAP_TOKENS_MAX = 60
"""`map` makes a new value for each item, as large as its program says: both must be small."""
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
        in_templates = (piece.name for piece in self.templates if piece.kind == "node")
        return frozenset([*self.nodes, *in_templates])

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
        node_paths = paths.get("nodes", {})
        return {
            "input": narrowed(scope.input, paths["input"]) if "input" in paths else None,
            "params": narrowed(scope.input, paths["params"]) if "params" in paths else None,
            "execution": dict(scope.execution),
            "nodes": {
                node_id: narrowed(_output_of(node_id, scope), node_paths.get(node_id, {}))
                for node_id in self.nodes
            },
            REFERENCES: [whole(look_up(reference, scope)) for reference in self.templates],
        }

    def decide(self, values: dict[str, Any] | Converted, scope: Scope) -> bool:
        """As `evaluate`, with values that are bound."""
        if isinstance(values, Converted):
            failed, result = values.run(self)
        else:
            failed, result = _run(self.program, values)
        if failed:
            reason = _reason(result, self.source, self._visible_values(scope))
            raise Missing(f"{_quote(self.source)} can't be evaluated: {reason}")
        kind = _kind(result)
        if kind != "BOOL":
            description = _describe_result(result, kind)
            raise Missing(f"{_quote(self.source)} gave {description}; it must give true or false")
        return bool(result.plain_value())

    def _visible_values(self, scope: Scope) -> dict[str, Any]:
        """Everything that was there to look at, for a hint."""
        values: dict[str, Any] = {}
        if self.uses_input:
            values["input"] = scope.input
            values["params"] = scope.input
        for node_id in self.nodes:
            values[node_id] = _output_of(node_id, scope)
        return values


def _output_of(node_id: str, scope: Scope) -> Any:
    return with_aliases(opened(scope.output(node_id)), scope.aliases(node_id))


def _describe_result(result: Any, kind: str) -> str:
    """A small value as JSON, of any other the kind.

    Turning a list into Python's can take far more memory than CEL needed for it.
    """
    if kind in ("INT", "UINT", "DOUBLE", "STRING", "NULL"):
        return json.dumps(result.plain_value(), ensure_ascii=False)[:60]
    return KINDS.get(kind, kind.lower())


class Converted:
    """Values that many conditions look at, converted for CEL once.

    Converting costs far more than most conditions. Not for conditions with `templates`, each of
    which has values of its own.
    """

    def __init__(self, conditions: Iterable[Condition], scope: Scope) -> None:
        self._conditions = list(conditions)
        self._scope = scope
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
            if fit_integers:
                values = _fit_integers(values)
            self._activations[fit_integers] = _environment(VARIABLES).Activation(values)
        return self._activations[fit_integers]

    def _bind(self) -> dict[str, Any]:
        paths: Paths = {}
        for condition in self._conditions:
            paths = merged(paths, condition.paths)
        nodes = tuple(paths.get("nodes", {}))
        return Condition("", "", nodes, (), paths, 0).bind(self._scope)


def merged(paths: Paths, other: Paths) -> Paths:
    """The paths that either looks at."""
    result = dict(paths)
    for key, inner in other.items():
        is_whole = key in result and not (result[key] and inner)
        result[key] = {} if is_whole else merged(result.get(key, {}), inner)
    return result


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
    size = 0
    stack = [value]
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
    aliased = {alias: value[key] for alias, key in aliases.items() if key in value}
    return {**aliased, **value}


def compile_condition(source: str, node_ids: Collection[str]) -> Condition:
    """Raises `TemplateError` with a code and a text for the user."""
    if len(source) > CONDITION_CHARACTERS_MAX:
        raise TemplateError(
            "malformed_condition",
            f"the condition has {len(source):,} characters;"
            f" the limit is {CONDITION_CHARACTERS_MAX:,}",
        )
    plain = source
    templates: tuple[Reference, ...] = ()
    if "{{" in source:
        plain, templates = _without_braces(source, node_ids)
    program, nodes = _with_nodes(plain, node_ids)

    try:
        kind = _type_name(cel_program(program, VARIABLES).return_type())
    except ValueError as error:
        raise _explain(_syntax_error(plain) or str(error), source, plain) from None
    if kind not in ("BOOL", "DYN"):
        kind_name = KINDS.get(kind, kind.lower())
        raise TemplateError(
            "malformed_condition",
            f"{_quote(source)} gives {kind_name}; it must give true or false",
        )

    return Condition(
        source=source,
        program=program,
        nodes=tuple(sorted(nodes)),
        templates=templates,
        paths=looked_at(program),
        inline_bytes=inline_bytes(program),
    )


def _without_braces(source: str, node_ids: Collection[str]) -> tuple[str, tuple[Reference, ...]]:
    """The older spelling as CEL, each reference as an item of `REFERENCES`, and the references."""
    references: list[Reference] = []
    program = ""
    for piece in parse_text(source, node_ids):
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
            if program.endswith(("'", '"')):
                program = program[:-1] + name + "\0"
            else:
                program += name
    program = re.sub(r"\0['\"]?", "", program)
    words = [PYTHON_WORDS.get(token[0], token[0]) for token in TOKEN.finditer(program)]
    return "".join(words), tuple(references)


def _with_nodes(program: str, node_ids: Collection[str]) -> tuple[str, set[str]]:
    """The program with each node's name as `nodes["name"]`, and the nodes that it names.

    Refuses what could take time or memory without bound.
    """
    nodes: set[str] = set()
    rewritten: list[str] = []
    own = CONSTANTS | {REFERENCES} | _comprehension_variables(program)
    before = ""
    parens: list[bool] = []
    maps = 0
    for token in TOKEN.finditer(program):
        text = token[0]
        rest = program[token.end() :]
        rewritten.append(text)
        if token["space"]:
            continue

        if text == "(":
            is_comprehension = before.startswith(".") and before[1:] in COMPREHENSIONS
            maps += before == ".map"
            if maps > 1:
                raise _too_costly("map twice")
            if is_comprehension and any(parens):
                raise _too_costly("map, filter, all or exists inside another of them")
            parens.append(is_comprehension)
        elif text == ")" and parens:
            parens.pop()
        elif token["name"] and before != "." and text not in own:
            is_call = rest.lstrip().startswith("(")
            if not is_call:
                rewritten[-1] = _rewrite_name(text, rest, node_ids, nodes)
        before = before + text if before == "." else text
    return "".join(rewritten), nodes


def _too_costly(what: str) -> TemplateError:
    return TemplateError(
        "malformed_condition", f"a condition can't use {what}; put a transform before it"
    )


PLACEHOLDER = re.compile("\0([0-9]+)\0")
LITERAL = re.compile(r"""([rRbB]*)(\"{3}|'{3}|"|')(.*)\2\Z""", re.DOTALL)


def bind_references(
    expression: str, node_ids: Collection[str], variables: Any
) -> tuple[str, dict[str, Text]]:
    """A CEL expression with a variable for each `{{ reference }}` in it, and those variables.

    What an output holds is data: pasted into the expression, it would be read as a program. A text
    in quotes that has references in it becomes one variable, which is that text. `variables` are
    those that are taken.
    """
    if not isinstance(variables, dict):
        raise TemplateError(
            "malformed_template", 'variables must be an object, such as {"limit": 3}'
        )
    pieces = parse_text(expression, node_ids)
    if "\0" in expression:
        raise TemplateError("malformed_template", "an expression can't have a NUL character in it")

    marked = "".join(
        piece if isinstance(piece, str) else f"\0{i}\0" for i, piece in enumerate(pieces)
    )
    bound: dict[str, Text] = {}

    def variable(text: Text) -> str:
        number = len(bound)
        name = f"__{number}"
        while name in variables or name in bound:
            number += 1
            name = f"__{number}"
        bound[name] = text
        return name

    rewritten = ""
    for token in TOKEN.finditer(marked):
        if token["string"] and "\0" in token[0]:
            rewritten += variable(_quoted_text(token[0], pieces))
        else:
            rewritten += token[0]
    rewritten = PLACEHOLDER.sub(lambda mark: variable([pieces[int(mark[1])]]), rewritten)
    return rewritten, bound


def _quoted_text(literal: str, pieces: Text) -> Text:
    """What a string literal with placeholders in it says."""
    match = LITERAL.match(literal)
    is_raw = match is not None and match[1] in ("r", "R")
    if match is None or (not is_raw and (match[1] or "\\" in match[3])):
        raise TemplateError(
            "malformed_template",
            "a reference can't stand in a text with escapes or in bytes;"
            " write 'text ' + string({{ … }}) instead",
        )
    parts = PLACEHOLDER.split(match[3])
    # the first one may be empty: then it keeps a single reference from giving anything but text
    return [
        part if i % 2 == 0 else pieces[int(part)] for i, part in enumerate(parts) if part or i == 0
    ]


def looked_at(program: str) -> Paths:
    """By variable, the keys that follow it.

    `input.a.b && nodes["x"].n` looks at {input: {a: {b}}, nodes: {x: {n}}}. A variable that
    stands alone, or is followed by an index or a method, is looked at as a whole.
    """
    tokens = [token for token in TOKEN.finditer(program) if not token["space"]]
    paths: Paths = {}
    wholes: list[list[str]] = []
    for i, token in enumerate(tokens):
        is_member = i > 0 and tokens[i - 1][0] == "."
        if not token["name"] or token[0] not in VARIABLES or is_member:
            continue
        path = _path_at(tokens, i)
        branch = paths
        for key in path:
            branch = branch.setdefault(key, {})
        wholes.append(path)
    for path in wholes:
        _prune(paths, path)
    return paths


def _path_at(tokens: list[re.Match[str]], start: int) -> list[str]:
    """The variable at `start`, and the keys that follow it."""

    def text(index: int) -> str:
        return tokens[index][0] if index < len(tokens) else ""

    path = [text(start)]
    end = start + 1
    if path == ["nodes"] and text(end) == "[" and text(end + 2) == "]":
        path.append(_unquote(text(end + 1)))
        end += 3
    while text(end) == "." and end + 1 < len(tokens):
        is_name = tokens[end + 1]["name"]
        is_method = text(end + 2) == "("
        if not is_name or is_method:
            break
        path.append(text(end + 1))
        end += 2
    return path


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
    """Up to how many bytes of values a program takes a few milliseconds at most; 0 for none.

    Each operation then costs no more than a look at all of the values, whatever they are: no
    regular expressions, nothing that builds much, few calls. A `contains` is the dearest of them.
    """
    tokens = [token for token in TOKEN.finditer(program) if not token["space"]]
    if len(tokens) > INLINE_TOKENS_MAX:
        return 0
    texts = [token[0] for token in tokens]
    additions = texts.count("+")
    calls = 0
    loops = 0
    for i, text in enumerate(texts):
        if text != "(" or i == 0 or not tokens[i - 1]["name"]:
            continue
        calls += 1
        name = texts[i - 1]
        is_method = texts[i - 2 : i - 1] == ["."]
        if is_method and name in CHEAP_LOOPS:
            loops += 1  # one inside another is one too many
        elif name not in (CHEAP_METHODS if is_method else CHEAP_FUNCTIONS):
            return 0
    if calls > INLINE_CALLS_MAX or additions > INLINE_ADDITIONS_MAX:
        return 0
    if loops > 1 or (loops and additions):
        return 0
    if loops and "map" in texts:
        return INLINE_MAP_BYTES if len(tokens) <= INLINE_MAP_TOKENS_MAX else 0
    return INLINE_LOOP_BYTES if loops else INLINE_BYTES


def _rewrite_name(text: str, rest: str, node_ids: Collection[str], nodes: set[str]) -> str:
    """A name as it stands in the program that is run; a node's is added to `nodes`."""
    if text == "secrets":
        raise TemplateError("malformed_condition", "conditions can't use secrets")
    if text != "nodes":
        if text not in node_ids:
            return text
        nodes.add(text)
        return f'nodes["{text}"]'
    match = NAMED_NODE.match(rest)
    if match is None:
        message = 'in a condition, nodes must be followed by an id in quotes: nodes["its id"]'
        raise TemplateError("malformed_condition", message)
    name = _unquote(match[1])
    if name not in node_ids:
        raise TemplateError(
            "unknown_reference", f"the condition refers to {name!r}, which isn't a node", name
        )
    nodes.add(name)
    return text


def _unquote(literal: str) -> str:
    as_json = {"\\'": "'", '"': '\\"'}
    inner = re.sub(r"\\.|\"", lambda part: as_json.get(part[0], part[0]), literal[1:-1])
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


def _quote(source: str) -> str:
    if len(source) > QUOTED_CHARACTERS_MAX:
        source = source[: QUOTED_CHARACTERS_MAX - 1] + "…"
    return f"the condition {source!r}"


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
            return TemplateError(
                "malformed_condition",
                f"{_quote(source)} can't be read:"
                f" write {PYTHON_WORDS[token[0]]} instead of {token[0]}",
            )

    undeclared = re.search(r"undeclared reference to '([^'.]+)", error)
    if undeclared and re.search(rf"\b{re.escape(undeclared[1])}\s*\(", program):
        return TemplateError(
            "malformed_condition",
            f"{_quote(source)} calls {undeclared[1]}(), which CEL doesn't have;"
            f" there are {FUNCTIONS}",
        )
    if undeclared:
        name = undeclared[1]
        return TemplateError(
            "unknown_reference", f"the condition refers to {name!r}, which isn't a node", name
        )

    located = re.search(r"ERROR: <input>:-?\d+:(-?\d+): (.*?)(?:\n|$)", error)
    text = _plain_words(located[2] if located else error)
    column = ""
    if located and source == program and "Syntax error" in error:
        column = f" (column {located[1]})"
    return TemplateError("malformed_condition", f"{_quote(source)} can't be read: {text}{column}")


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
        while len(self) > 1 and self._is_over_limit():
            oldest = next(iter(list(islice(self, 1))))
            self.pop(oldest, None)
            self.characters -= len(oldest[0])
        if len(self) == 1:
            self.characters = len(key[0])

    def _is_over_limit(self) -> bool:
        return len(self) > PROGRAMS_MAX or self.characters > PROGRAMS_CHARACTERS_MAX


_programs = _Programs()


def cel_program(program: str, names: tuple[str, ...]) -> Any:
    """A compiled program, cached for a while.

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
        reason = _reason(result, program, values)
        raise Missing(f"the expression {program!r} can't be evaluated: {reason}")
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
    if missing:
        text += _existing_keys(missing[1], program, values)
    return text


def _existing_keys(missing: str, program: str, values: dict[str, Any]) -> str:
    """A hint at the keys that are there instead.

    CEL says which key it didn't find; this finds where in the program it was looked for.
    """
    for dotted in DOTTED.finditer(program):
        path, *steps = (part.strip() for part in dotted[0].split("."))
        value = opened(values.get(path))
        for step in steps:
            if not isinstance(value, dict) or step not in value:
                break
            path = f"{path}.{step}"
            value = opened(value[step])
        else:
            continue
        if isinstance(value, dict) and step == missing:
            keys = ", ".join(key[:60] for key in islice(value, 20))
            return f"; {path} has: {keys or 'none'}"
    return ""


def _fit_integers(value: Any) -> Any:
    """The value with integers of more than 64 bits, which CEL doesn't have, as floats."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -INTEGER_MAX <= value <= INTEGER_MAX else float(value)
    if isinstance(value, dict):
        return {key: _fit_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fit_integers(item) for item in value]
    return value
