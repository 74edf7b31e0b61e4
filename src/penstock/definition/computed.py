"""Expressions in templates: `{{ price.data.amount * 1.2 }}`, CEL wherever a reference may stand.

What can be read as a reference is one and means what it always meant. Anything else is a program as
conditions are: the same names, functions, rewriting and budget. It is evaluated when its node
starts, at once if it is provably cheap, otherwise in the sandbox. What it gives keeps its JSON type
where it is the whole text. Secrets can't be used in it: whatever is computed is shown.

A key of an object may hold `-`, `/`, `%` or ` in `: `{{ a.b - 1 }}` looks for the key `b - 1`, as
ever. If there is none, it is computed instead.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from penstock.definition.cel import TOKEN, inline_bytes, reason_of, run_program, to_json
from penstock.definition.condition import (
    CONDITION_CHARACTERS_MAX,
    Formula,
    compiled_kind,
    looked_at,
    quoted_program,
    with_nodes,
)
from penstock.definition.template import (
    Missing,
    Reference,
    Scope,
    TemplateError,
    look_up,
    parse_fallback,
)

EXPRESSION = "expression"
COMPUTES = re.compile(
    r"""[()+*<>=!&?,{}']|\|\||\[\s*[^\s\d"]|^\s*(?:["\d-]|(?:true|false|null)\s*$)|\s[-/%:]\s|\sin\s"""
)
"""What no reference has. Text without any of it is a reference that has a mistake."""
OPERAND = re.compile(r"(?:[-/%:]|\sin\s)\s*([A-Za-z_]\w*)")
NAMES = frozenset({"input", "params", "execution", "nodes", "true", "false", "null"})
BRACES_END = "}}"


class Computed(Formula, frozen=True, tag=True):
    """An expression in a template."""

    has_fallback: bool = False
    fallback: Any = None
    plain: Reference | None = None
    """What it is as a reference; it is only computed if that finds nothing."""

    @property
    def references(self) -> frozenset[str]:
        names = super().references
        if self.plain is not None and self.plain.kind == "node":
            return names | {self.plain.name}
        return names

    @property
    def uses_input(self) -> bool:
        is_input = self.plain is not None and self.plain.kind == "input"
        return is_input or super().uses_input

    @property
    def text(self) -> str:
        """As it is written."""
        return "{{ " + self.source + " }}"

    def value(self, scope: Scope) -> Any:
        """What it gives, as plain JSON, or its fallback. Raises `Missing`."""
        if self.plain is not None:
            try:
                return look_up(self.plain, scope)
            except Missing as error:
                return self._alternative(scope, error)
        try:
            return self._computed(scope)
        except Missing:
            if self.has_fallback:
                return self.fallback
            raise

    def _alternative(self, scope: Scope, error: Missing) -> Any:
        try:
            return self._computed(scope)
        except Missing:
            raise error from None

    def _computed(self, scope: Scope) -> Any:
        failed, result = run_program(self.program, self.bind(scope))
        if failed:
            reason = reason_of(result, self.source, self._visible_values(scope))
            quotation = quoted_program(self.source, EXPRESSION)
            raise Missing(f"{quotation} can't be evaluated: {reason}")
        return to_json(result.plain_value())


def compute(
    text: str, start: int, node_ids: Collection[str], plain: Reference | TemplateError
) -> tuple[Reference | Computed, int]:
    """The expression that begins at `start`, and where the text after its braces begins.

    `plain` is what there is as a reference, or why it is none. Raises `TemplateError`.
    """
    end = _end_of(text, start)
    if end is None:
        if isinstance(plain, TemplateError):
            raise plain
        return plain, _after_braces(text, start)
    source = text[start:end].strip()
    has_fallback = text.startswith("??", end)
    fallback = None
    if isinstance(plain, TemplateError) and not COMPUTES.search(source):
        raise plain
    if isinstance(plain, Reference) and not _may_be_computed(source, node_ids):
        return plain, end + len(BRACES_END)
    if has_fallback:
        fallback, end = parse_fallback(text, end + 2)

    try:
        computed = _compiled(source, node_ids)
    except TemplateError:
        if isinstance(plain, Reference):
            return plain, end + len(BRACES_END)
        raise
    fields = {name: getattr(computed, name) for name in Formula.__struct_fields__}
    piece = Computed(
        **fields,
        has_fallback=has_fallback,
        fallback=fallback,
        plain=plain if isinstance(plain, Reference) else None,
    )
    return piece, end + len(BRACES_END)


def _may_be_computed(source: str, node_ids: Collection[str]) -> bool:
    """Whether what follows each operator is known. In `http.headers.content-type` nothing is."""
    operands = (match[1] for match in OPERAND.finditer(source))
    return all(name in NAMES or name in node_ids for name in operands)


def _after_braces(text: str, start: int) -> int:
    return text.index(BRACES_END, start) + len(BRACES_END)


def _end_of(text: str, start: int) -> int | None:
    """Where the `}}` or `??` stands that ends an expression: not in a text, and in no braces."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        character = token[0]
        if character == "{":
            depth += 1
        elif character == "}" and depth:
            depth -= 1
        elif not depth and text.startswith((BRACES_END, "??"), token.start()):
            return token.start()
    return None


def _compiled(source: str, node_ids: Collection[str]) -> Formula:
    if len(source) > CONDITION_CHARACTERS_MAX:
        raise TemplateError(
            "malformed_expression",
            f"the expression has {len(source):,} characters;"
            f" the limit is {CONDITION_CHARACTERS_MAX:,}",
        )
    named = with_nodes(source, node_ids, EXPRESSION)
    compiled_kind(named, source, source, EXPRESSION)
    return Formula(
        source=source,
        program=named.program,
        nodes=tuple(sorted(named.nodes)),
        templates=(),
        paths=looked_at(named.program),
        inline_bytes=inline_bytes(named.program),
        outcomes=tuple(sorted(named.outcomes)),
        either=tuple(sorted(named.either)),
    )
