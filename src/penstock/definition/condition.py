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
from typing import Any, NamedTuple, TypeAlias

import msgspec

from penstock.definition.cel import (
    COMPREHENSIONS,
    CONSTANTS,
    KINDS,
    TOKEN,
    cel_program,
    comprehension_variables,
    environment,
    evaluate_program,
    inline_bytes,
    integers_fitted,
    kind_of_result,
    plain_words,
    programs,
    reason_of,
    run_program,
    type_name,
)
from penstock.definition.functions import FUNCTIONS, METHODS, NAMESPACES
from penstock.definition.model import ANY_KEY
from penstock.definition.template import (
    OUTCOME_FIELDS,
    STEPS,
    Missing,
    Reference,
    Scope,
    TemplateError,
    look_up,
    opened,
    parse_text,
    whole,
)
from penstock.spelling import nearest_name

CONDITION = "condition"
WITHOUT_BRACES = "a condition is an expression as a whole: write it without {{ }}"
CONDITION_CHARACTERS_MAX = 4000
QUOTED_CHARACTERS_MAX = 80
"""How much of a condition a message quotes."""
REFERENCES = "__references"
OUTCOMES = "__outcomes"
VARIABLES = ("execution", "input", "nodes", "params", OUTCOMES, REFERENCES)
PYTHON_WORDS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "and": "&&",
    "or": "||",
    "not": "!",
}
CALLED = re.compile(r"\s*\.\s*(\w+)\s*\(")
OUTCOME = re.compile(r"\s*\.\s*([A-Za-z_]\w*)")
OUTCOME_FIELD = re.compile(r"\s*\.\s*(state|error)\b(?!\s*\()")
HAS_CHARACTERS_MAX = 20
"""How far before a name its `has(` is looked for."""
IN_HAS = re.compile(r"\bhas\s*\(\s*\Z")
NAMED_NODE = re.compile(r"""\s*\[\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]""")


Paths: TypeAlias = dict[str, Any]
"""What of a value is looked at: by key, what of that; an empty one means all of it."""


class Formula(msgspec.Struct, frozen=True):
    """A CEL program of a document: a condition, or an expression in a template."""

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
    outcomes: tuple[str, ...] = ()
    """Nodes of which it asks how they have ended."""
    either: tuple[str, ...] = ()
    """Nodes of which `nodes["its id"].state` or `.error` is named: the output's, or the node's."""

    @property
    def outcomes_of(self) -> frozenset[str]:
        """Nodes of which it may ask how they have ended."""
        in_templates = (piece.outcome_of for piece in self.templates)
        names = (name for name in in_templates if name is not None)
        return frozenset([*self.outcomes, *self.either, *names])

    @property
    def is_about_end(self) -> bool:
        """Whether it asks how the execution ends."""
        named = self.paths.get("execution", {})
        return "state" in named or "error" in named

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
        return (self.program, VARIABLES) in programs

    def bind(self, scope: Scope) -> dict[str, Any]:
        """The values that the program looks at, and no others. Raises `Missing`."""
        paths = self.paths
        return {
            "input": narrowed(scope.input, paths["input"]) if "input" in paths else None,
            "params": narrowed(scope.input, paths["params"]) if "params" in paths else None,
            "execution": self._execution(scope),
            "nodes": {node_id: self._node(node_id, scope) for node_id in self.nodes},
            OUTCOMES: {node_id: dict(scope.outcome(node_id)) for node_id in self.outcomes},
            REFERENCES: [whole(look_up(reference, scope)) for reference in self.templates],
        }

    def _execution(self, scope: Scope) -> dict[str, Any]:
        named = self.paths.get("execution", {})
        ending = {key: scope.ending[key] for key in OUTCOME_FIELDS if key in named}
        return {**scope.execution, **ending}

    def _node(self, node_id: str, scope: Scope) -> Any:
        """What `nodes["its id"]` is: the output, or how the node has ended where that has no more.

        Raises `Missing`.
        """
        paths = self.paths.get("nodes", {}).get(node_id, {})
        if node_id not in self.either or not paths:
            return narrowed(_output_of(node_id, scope), paths)
        try:
            value = narrowed(_output_of(node_id, scope), paths)
        except Missing:
            value = {}
        if not isinstance(value, dict):
            return value
        outcome = scope.outcome(node_id)
        return {**{key: outcome[key] for key in OUTCOME_FIELDS if key in paths}, **value}

    def _visible_values(self, scope: Scope) -> dict[str, Any]:
        """Everything that was there to look at, for a hint."""
        values: dict[str, Any] = {}
        if self.uses_input:
            values["input"] = scope.input
            values["params"] = scope.input
        for node_id in self.nodes:
            if node_id not in self.either:
                values[node_id] = _output_of(node_id, scope)
        return values


class Condition(Formula, frozen=True):
    """A program that says whether a node runs."""

    def evaluate(self, scope: Scope) -> bool:
        """Raises `Missing` with a text for the user when there is no boolean to be had."""
        return self.decide(self.bind(scope), scope)

    def decide(self, values: dict[str, Any] | Converted, scope: Scope) -> bool:
        """As `evaluate`, with values that are bound."""
        if isinstance(values, Converted):
            failed, result = values.run(self)
        else:
            failed, result = run_program(self.program, values)
        if failed:
            reason = reason_of(result, self.source, self._visible_values(scope))
            raise Missing(f"{quoted_program(self.source)} can't be evaluated: {reason}")
        kind = kind_of_result(result)
        if kind != "BOOL":
            description = _describe_result(result, kind)
            raise Missing(
                f"{quoted_program(self.source)} gave {description}; it must give true or false"
            )
        return bool(result.plain_value())


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
        failed, result = evaluate_program(program, activation=self._activation(fit_integers=False))
        if failed and "out of range" in str(result):
            return evaluate_program(program, activation=self._activation(fit_integers=True))
        return failed, result

    def _activation(self, *, fit_integers: bool) -> Any:
        if fit_integers not in self._activations:
            values = self._bind()
            if fit_integers:
                values = integers_fitted(values)
            self._activations[fit_integers] = environment(VARIABLES).Activation(values)
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


def with_aliases(value: Any, aliases: Mapping[str, str]) -> Any:
    """So that `llm.text` works in a condition as it does in a template."""
    if not isinstance(value, dict):
        return value
    aliased = {alias: value[key] for alias, key in aliases.items() if key in value}
    inner = opened(aliased.pop(ANY_KEY, None))
    if isinstance(inner, dict):
        return {**inner, **value}
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
        try:
            plain, templates = _without_braces(source, node_ids)
        except TemplateError as error:
            if STEPS not in str(error):
                raise
            raise TemplateError(error.code, f"{error}; {WITHOUT_BRACES}") from None
    named = with_nodes(plain, node_ids, CONDITION)
    program = named.program
    kind = compiled_kind(named, source, plain, CONDITION)
    if kind not in ("BOOL", "DYN"):
        kind_name = KINDS.get(kind, kind.lower())
        raise TemplateError(
            "malformed_condition",
            f"{quoted_program(source)} gives {kind_name}; it must give true or false",
        )

    return Condition(
        source=source,
        program=program,
        nodes=tuple(sorted(named.nodes)),
        templates=templates,
        paths=looked_at(program),
        inline_bytes=inline_bytes(program),
        outcomes=tuple(sorted(named.outcomes)),
        either=tuple(sorted(named.either)),
    )


def compiled_kind(named: Named, source: str, plain: str, noun: str) -> str:
    """The type of what a program gives, as far as CEL knows it. Raises `TemplateError`."""
    try:
        return type_name(cel_program(named.program, VARIABLES).return_type())
    except ValueError as error:
        raise _explain(_syntax_error(plain) or str(error), source, plain, noun) from None


def _without_braces(source: str, node_ids: Collection[str]) -> tuple[str, tuple[Reference, ...]]:
    """The older spelling as CEL, each reference as an item of `REFERENCES`, and the references."""
    references: list[Reference] = []
    program = ""
    for piece in parse_text(source, node_ids):
        if not isinstance(piece, Reference):
            program += piece if isinstance(piece, str) else piece.source
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


class Named(msgspec.Struct):
    """A program with each node's name as `nodes["name"]`, and the nodes that it names."""

    program: str = ""
    nodes: set[str] = msgspec.field(default_factory=set)
    outcomes: set[str] = msgspec.field(default_factory=set)
    either: set[str] = msgspec.field(default_factory=set)


def with_nodes(program: str, node_ids: Collection[str], noun: str) -> Named:
    """What is run of a program.

    A condition that could take time or memory without bound is refused.
    """
    named = Named()
    rewritten: list[str] = []
    own = CONSTANTS | {REFERENCES} | comprehension_variables(program)
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
            if maps > 1 and noun == CONDITION:
                raise _too_costly("map twice")
            if is_comprehension and any(parens) and noun == CONDITION:
                raise _too_costly("map, filter, all or exists inside another of them")
            parens.append(is_comprehension)
        elif text == ")" and parens:
            parens.pop()
        elif token["name"] and before != "." and text not in own:
            is_call = rest.lstrip().startswith("(")
            if not is_call and not is_namespace(text, rest):
                near = max(0, token.start() - HAS_CHARACTERS_MAX)
                in_has = IN_HAS.search(program, near, token.start()) is not None
                name = _Name(text, rest, in_has=in_has)
                rewritten[-1] = _rewrite_name(name, node_ids, named, noun)
        before = before + text if before == "." else text
    named.program = "".join(rewritten)
    return named


class _Name(NamedTuple):
    text: str
    rest: str
    """The program after it."""
    in_has: bool


def is_namespace(name: str, rest: str) -> bool:
    """Whether this is the `math` of `math.round(…)`, and not a node of that name."""
    if name not in NAMESPACES:
        return False
    called = CALLED.match(rest)
    return called is not None and f"{name}.{called[1]}" in FUNCTIONS


def _too_costly(what: str) -> TemplateError:
    return TemplateError(
        "malformed_condition", f"a condition can't use {what}; put a transform before it"
    )


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


def _rewrite_name(written: _Name, node_ids: Collection[str], named: Named, noun: str) -> str:
    """A name as it stands in the program that is run; a node's is added to `named`."""
    text = written.text
    if text == "secrets" and noun == CONDITION:
        raise TemplateError("malformed_condition", "conditions can't use secrets")
    if text == "secrets":
        message = "an expression can't use secrets; one stands alone, as in {{ secrets.NAME }}"
        raise TemplateError("secret_not_allowed", message)
    if text != "nodes":
        if text not in node_ids:
            return text
        named.nodes.add(text)
        return f'nodes["{text}"]'

    by_id = NAMED_NODE.match(written.rest)
    by_name = OUTCOME.match(written.rest)
    match = by_id or by_name
    if match is None:
        message = f'in {_article(noun)}, nodes must be followed by an id in quotes: nodes["its id"]'
        raise TemplateError(f"malformed_{noun}", message)
    name = match[1] if by_id is None else _unquote(match[1])
    if name not in node_ids:
        raise TemplateError(
            "unknown_reference", f"the {noun} refers to {name!r}, which isn't a node", name
        )
    asks_for_end = OUTCOME_FIELD.match(written.rest, match.end()) is not None
    if by_id is None:
        if not asks_for_end:
            message = f"nodes.{name} has state and error; its output is {name} alone"
            raise TemplateError(f"malformed_{noun}", f"the {noun}: {message}")
        named.outcomes.add(name)
        return OUTCOMES
    if asks_for_end and not written.in_has:
        named.either.add(name)
    named.nodes.add(name)
    return text


def _article(noun: str) -> str:
    return f"an {noun}" if noun.startswith("e") else f"a {noun}"


def _unquote(literal: str) -> str:
    as_json = {"\\'": "'", '"': '\\"'}
    inner = re.sub(r"\\.|\"", lambda part: as_json.get(part[0], part[0]), literal[1:-1])
    try:
        return str(json.loads(f'"{inner}"'))
    except ValueError:
        raise TemplateError(
            "malformed_condition", f"nodes[{literal}]: use only JSON's escapes in an id"
        ) from None


def quoted_program(source: str, noun: str = CONDITION) -> str:
    """A program as it stands in a message."""
    if len(source) > QUOTED_CHARACTERS_MAX:
        source = source[: QUOTED_CHARACTERS_MAX - 1] + "…"
    return f"the {noun} {source!r}"


def unknown_function(name: str, program: str) -> str:
    """What a message says of a call, with the function that was probably meant."""
    is_method = re.search(rf"\.\s*{re.escape(name)}\s*\(", program) is not None
    names = METHODS if is_method else FUNCTIONS
    nearest = nearest_name(name, sorted(names))
    hint = f"did you mean {nearest}()?" if nearest else "docs/functions.md lists all"
    return f"calls {name}(), which isn't a function; {hint}"


def _syntax_error(program: str) -> str:
    """What is wrong with the grammar, in the words and columns of what was written."""
    try:
        cel_program(program, VARIABLES)
    except ValueError as error:
        return str(error) if "Syntax error" in str(error) else ""
    return ""


def _explain(error: str, source: str, program: str, noun: str) -> TemplateError:
    """CEL's own texts are about its grammar; these are about the condition."""
    code = f"malformed_{noun}"
    quotation = quoted_program(source, noun)
    for token in TOKEN.finditer(program):
        if token["name"] and token[0] in PYTHON_WORDS:
            return TemplateError(
                code,
                f"{quotation} can't be read: write {PYTHON_WORDS[token[0]]} instead of {token[0]}",
            )

    undeclared = re.search(r"undeclared reference to '([^'.]+)", error)
    if undeclared and re.search(rf"\b{re.escape(undeclared[1])}\s*\(", program):
        return TemplateError(code, f"{quotation} {unknown_function(undeclared[1], program)}")
    if undeclared:
        name = undeclared[1]
        return TemplateError(
            "unknown_reference", f"the {noun} refers to {name!r}, which isn't a node", name
        )

    located = re.search(r"ERROR: <input>:-?\d+:(-?\d+): (.*?)(?:\n|$)", error)
    text = plain_words(located[2] if located else error)
    column = ""
    if located and source == program and "Syntax error" in error:
        column = f" (column {located[1]})"
    return TemplateError(code, f"{quotation} can't be read: {text}{column}")
