"""Expressions: the CEL of a `transform`, over outputs, the input and the execution.

A worker evaluates them. It has the outputs of the node's parents; whatever else an expression names
is bound to a variable in its config when the node starts: outputs of other nodes that come before,
`input`, `execution`, and each `{{ reference }}`. All of these are values: what an output holds is
never read as a part of the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from penstock.definition.cel import (
    CEL_ERROR,
    CONSTANTS,
    TOKEN,
    cel_program,
    comprehension_variables,
    plain_words,
)
from penstock.definition.computed import Computed, compute
from penstock.definition.condition import is_namespace, unknown_function
from penstock.definition.template import (
    Reference,
    TemplateError,
    Text,
    parse_text,
)

EXPRESSION_HANDLERS = frozenset({"transform", "penstock.compute"})
"""Handlers whose config has an `expression`."""
EXPRESSION_CHARACTERS_MAX = 20_000
QUOTED_CHARACTERS_MAX = 80
MAPS = ("nodes", "inputs")
"""Variables that hold the outputs of the node's parents by their ids."""
ROOTS = {"input": "input", "params": "input", "execution": "execution"}
PLACEHOLDER = re.compile("\0([0-9]+)\0")
LITERAL = re.compile(r"""([rRbB]*)(\"{3}|'{3}|"|')(.*)\2\Z""", re.DOTALL)
INDEX = re.compile(r"""\s*\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]""")
MEMBER = re.compile(r"\s*\.\s*([A-Za-z_]\w*+)(?!\s*\()")
IN_HAS = re.compile(r"\bhas\s*\(\s*\Z")
# Words that CEL reserves, and the two maps; a parent of such a name is found in `nodes`.
RESERVED = frozenset(
    {
        "as",
        "bool",
        "break",
        "bytes",
        "const",
        "continue",
        "double",
        "duration",
        "dyn",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "inputs",
        "int",
        "let",
        "list",
        "loop",
        "map",
        "namespace",
        "nodes",
        "null",
        "null_type",
        "package",
        "return",
        "string",
        "timestamp",
        "true",
        "type",
        "uint",
        "var",
        "void",
        "while",
    }
)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Mention(msgspec.Struct, frozen=True):
    """A node, or a part of its output, that a program names."""

    start: int
    end: int
    node_id: str
    path: tuple[str, ...] = ()
    is_name: bool = False
    """The words are the node's own name; else something such as `nodes["its id"]`."""
    is_fixed: bool = False
    """The words can't be replaced by the name of a variable."""

    @property
    def reference(self) -> Reference:
        return Reference("node", self.node_id, self.path, f"{{{{ {self.node_id} }}}}")


class Expression(msgspec.Struct, frozen=True):
    source: str
    program: str
    """With a variable for each `{{ reference }}`."""
    texts: dict[str, Text]
    """What those variables hold."""
    mentions: tuple[Mention, ...]
    roots: tuple[str, ...]
    """Which of `input`, `params` and `execution` it names."""

    @property
    def nodes(self) -> frozenset[str]:
        node_ids = {mention.node_id for mention in self.mentions}
        for text in self.texts.values():
            for piece in text:
                if isinstance(piece, Computed):
                    node_ids |= piece.references
                elif isinstance(piece, Reference) and piece.kind == "node":
                    node_ids.add(piece.name)
        return frozenset(node_ids)

    @property
    def has_secrets(self) -> bool:
        pieces = (piece for text in self.texts.values() for piece in text)
        return any(isinstance(piece, Reference) and piece.kind == "secret" for piece in pieces)

    def bound(self, parents: Collection[str]) -> tuple[str, dict[str, Text]]:
        """The program for a node with these parents, and what its variables hold."""
        texts = dict(self.texts)
        for name in self.roots:
            texts[name] = [Reference(ROOTS[name], name, (), f"{{{{ {name} }}}}")]
        program = self.program
        for mention in reversed(self.mentions):
            if mention.is_fixed or (mention.node_id in parents and not mention.path):
                continue
            name = mention.node_id
            if not mention.is_name:
                name = _free_name(texts, self.source, len(texts))
            texts[name] = [mention.reference]
            program = program[: mention.start] + name + program[mention.end :]
        return program, texts


def compile_expression(
    source: str,
    variables: Mapping[str, Any],
    node_ids: Collection[str],
    aliases_of: Callable[[str], Collection[str]],
) -> Expression:
    """Raises `TemplateError` with a code and a text for the user.

    `variables` are those of the config. `aliases_of` answers which keys of a node's output read
    another key.
    """
    if len(source) > EXPRESSION_CHARACTERS_MAX:
        raise TemplateError(
            "malformed_expression",
            f"the expression has {len(source):,} characters;"
            f" the limit is {EXPRESSION_CHARACTERS_MAX:,}",
        )
    program = source
    texts: dict[str, Text] = {}
    if "{{" in source:
        program, texts = bind_references(source, node_ids, variables)
    own = {*CONSTANTS, *variables, *texts, *comprehension_variables(program)}
    mentions: list[Mention] = []
    roots: dict[str, None] = {}
    before = ""
    for token in TOKEN.finditer(program):
        if token["space"]:
            continue
        name = token["name"]
        rest = program[token.end() :]
        is_variable = name and before != "." and name not in own and not _is_called(name, rest)
        if is_variable:
            mention = _mention(program, token, node_ids, aliases_of)
            if mention is not None:
                mentions.append(mention)
            elif name in ROOTS:
                roots[name] = None
        before = token[0]
    return Expression(source, program, texts, tuple(mentions), tuple(roots))


def check_expression(expression: Expression, variables: Mapping[str, Any]) -> None:
    """Raises `TemplateError` for an expression that CEL can't read, or that names the unknown."""
    program, texts = expression.bound(())
    names = {*variables, *texts, *MAPS}
    try:
        cel_program(program, tuple(sorted(names)))
    except ValueError as error:
        raise _explain(str(error), expression.source, program) from None


def is_variable_name(name: str) -> bool:
    return name not in RESERVED and IDENTIFIER.fullmatch(name) is not None


def _is_called(name: str, rest: str) -> bool:
    return rest.lstrip().startswith("(") or is_namespace(name, rest)


def _mention(
    program: str,
    token: re.Match[str],
    node_ids: Collection[str],
    aliases_of: Callable[[str], Collection[str]],
) -> Mention | None:
    """The node that a name stands for, or `nodes["its id"]`; None if it is no node's."""
    name = token[0]
    in_has = IN_HAS.search(program, max(0, token.start() - 20), token.start()) is not None
    if name in MAPS:
        return _mention_by_id(program, token, node_ids, in_has=in_has)
    if name == "secrets":
        raise TemplateError("secret_not_allowed", "expressions can't use secrets")
    if name not in node_ids or name in RESERVED:
        return None
    member = MEMBER.match(program, token.end())
    if member and not in_has and member[1] in aliases_of(name):
        return Mention(token.start(), member.end(), name, (member[1],))
    return Mention(token.start(), token.end(), name, is_name=True)


def _mention_by_id(
    program: str, token: re.Match[str], node_ids: Collection[str], *, in_has: bool
) -> Mention | None:
    index = INDEX.match(program, token.end()) or MEMBER.match(program, token.end())
    if index is None:
        return None
    node_id = next(group for group in index.groups() if group is not None)
    if node_id not in node_ids:
        raise TemplateError(
            "unknown_reference",
            f"the expression refers to {node_id!r}, which isn't a node",
            node_id,
        )
    is_fixed = in_has and index.re is MEMBER
    return Mention(token.start(), index.end(), node_id, is_fixed=is_fixed)


def _explain(error: str, source: str, program: str) -> TemplateError:
    quotation = _quote(source)
    undeclared = re.search(r"undeclared reference to '([^'.]+)", error)
    if undeclared and re.search(rf"\b{re.escape(undeclared[1])}\s*\(", program):
        return TemplateError(
            "malformed_expression", f"{quotation} {unknown_function(undeclared[1], program)}"
        )
    if undeclared:
        name = undeclared[1]
        return TemplateError(
            "unknown_reference", f"the expression refers to {name!r}, which isn't a node", name
        )
    reasons = CEL_ERROR.findall(error)
    reason = plain_words(reasons[0] if reasons else error)
    return TemplateError("malformed_expression", f"{quotation} can't be read: {reason}")


def _quote(source: str) -> str:
    if len(source) > QUOTED_CHARACTERS_MAX:
        source = source[: QUOTED_CHARACTERS_MAX - 1] + "…"
    return f"the expression {source!r}"


def _free_name(taken: Collection[str], source: str, number: int) -> str:
    """The name of a variable that nothing has, with this number or a later one."""
    while f"__{number}" in taken or f"__{number}" in source:
        number += 1
    return f"__{number}"


def bind_references(
    expression: str, node_ids: Collection[str], variables: Mapping[str, Any]
) -> tuple[str, dict[str, Text]]:
    """A CEL expression with a variable for each `{{ reference }}` in it, and those variables.

    What an output holds is data: pasted into the expression, it would be read as a program. A text
    in quotes that has references in it becomes one variable, which is that text. `variables` are
    those that are taken.
    """
    pieces = parse_text(expression, node_ids, compute)
    if "\0" in expression:
        raise TemplateError("malformed_template", "an expression can't have a NUL character in it")

    marked = "".join(
        piece if isinstance(piece, str) else f"\0{i}\0" for i, piece in enumerate(pieces)
    )
    bound: dict[str, Text] = {}

    def variable(text: Text) -> str:
        name = _free_name({*variables, *bound}, expression, len(bound))
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
