"""The settings of a map or a loop that are templates or conditions, compiled."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from penstock.definition.condition import Condition, compile_condition
from penstock.definition.config import Config, compile_config
from penstock.definition.fields import excerpt_of
from penstock.definition.model import Node
from penstock.definition.problems import Problems
from penstock.definition.template import Reference, TemplateError, parse_text

PREVIOUS = "previous"
ROUND = "round"
SECRETLESS = "output"
"""The handler whose rule about secrets holds for what is kept and shown."""


def _for_each_hint(source: str, names: Collection[str]) -> str:
    text = source.strip()
    if text and "{{" not in text and text.split(".")[0].split("[")[0] in names:
        return f"; write {{{{ {text} }}}}"
    if text.startswith("{{") and COMPUTES.search(text.strip("{} ")):
        return "; compute the list in a transform before it, and refer to its result"
    return ""


COMPUTES = re.compile(r"[()+*<>=!&?,|']")
"""What an expression may have, and no reference to a list."""


class RegionSettings:
    """Compiles the settings of one node; mistakes are in `problems`."""

    def __init__(self, node: Node, problems: Problems) -> None:
        self.node = node
        self.problems = problems

    def source(self, names: Collection[str]) -> Config | None:
        """The list of a map."""
        if self.node.each is None:
            return None
        source = self.node.each.source
        if isinstance(source, str) and not self._is_one_reference(source, names):
            return None
        return self._compiled("for_each", source, names, self.node.path)

    def _is_one_reference(self, source: str, names: Collection[str]) -> bool:
        path = f"{self.node.path}.for_each"
        try:
            pieces = parse_text(source.strip(), names)
        except TemplateError as error:
            if error.code == "unknown_reference" and not COMPUTES.search(source):
                error.report(path, self.node.id, self.problems, names)
                return False
            pieces = []
        if len(pieces) == 1 and isinstance(pieces[0], Reference) and pieces[0].kind != "secret":
            return True
        message = (
            '"for_each" must be exactly one reference to a list, such as {{ list.items }},'
            f" not {excerpt_of(source)}{_for_each_hint(source, names)}"
        )
        self.problems.error("bad_for_each", path, message, self.node.id)
        return False

    def initial(self, names: Collection[str]) -> Config | None:
        repeat = self.node.repeat
        if repeat is None or not repeat.has_initial:
            return None
        return self._compiled("initial", repeat.initial, names, f"{self.node.path}.repeat")

    def key(self, names: Collection[str]) -> Config | None:
        if self.node.each is None or self.node.each.key is None:
            return None
        compiled = self._compiled("key", self.node.each.key, names, self.node.path)
        if compiled.is_fixed and "{{" not in self.node.each.key:
            name = self.node.each.item_name
            message = (
                f'"key" is the same for every item; refer to what differs, as in'
                f" {{{{ {name}.id }}}}"
            )
            self.problems.error("bad_value", f"{self.node.path}.key", message, self.node.id)
        return compiled

    def collect(self, names: Collection[str]) -> Config | None:
        """The output of an item, or what a round carries on."""
        if self.node.each is not None and self.node.each.collect is not None:
            return self._compiled("collect", self.node.each.collect, names, self.node.path)
        repeat = self.node.repeat
        if repeat is not None and repeat.carry is not None:
            return self._compiled("carry", repeat.carry, names, f"{self.node.path}.repeat")
        return None

    def until(self, names: Collection[str]) -> Condition | None:
        repeat = self.node.repeat
        if repeat is None:
            return None
        try:
            return compile_condition(repeat.until, names)
        except TemplateError as error:
            path = f"{self.node.path}.repeat.until"
            if error.code == "malformed_condition":
                self.problems.error("bad_until", path, str(error), self.node.id)
            else:
                error.report(path, self.node.id, self.problems, names)
            return None

    def _compiled(self, field: str, value: Any, names: Collection[str], path: str) -> Config:
        if isinstance(value, str) and field == "for_each":
            value = value.strip()
        config = compile_config(
            {field: value}, names, path, self.node.id, self.problems, handler=SECRETLESS
        )
        if config.computed:
            # it is resolved between two commits, where nothing may take long
            message = f'"{field}" can\'t compute; compute in a node, and refer to its output'
            self.problems.error("bad_value", f"{path}.{field}", message, self.node.id)
        return config
