"""CEL (https://cel.dev): the text of a program, its compiled form, its values and its cost.

Conditions and the expressions of `transform` are programs. CEL has no loops, no functions of its
own and no I/O; which functions there are is in `functions`.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from penstock.definition.functions import (
    CHEAP_FUNCTIONS,
    CHEAP_METHODS,
    EXTENSIONS,
    FUNCTIONS,
    extension,
)
from penstock.definition.template import Missing, opened

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
COMPREHENSIONS = frozenset({"all", "exists", "exists_one", "map", "filter", "sortBy"})
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
CHEAP_LOOPS = frozenset({"all", "exists", "exists_one", "filter", "map"})
LIST_FUNCTIONS = frozenset({"max", "min", "sort", "sum"})
INLINE_MAP_BYTES = 1024
INLINE_MAP_TOKENS_MAX = 60
"""`map` makes a new value for each item, as large as its program says: both must be small."""
CONSTANTS = frozenset({"true", "false", "null", "in"})
DOTTED = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)+")
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
    (
        r"^sort\(\): list elements must have the same type$",
        "the items of list.sort() must have one type; sort(list) takes any numbers",
    ),
)
"""What CEL says about its grammar, in words about the condition."""
CEL_ERROR = re.compile(
    r"^(?:[A-Z_]+: )?ERROR: <input>:-?\d+:-?\d+: (.*?)(?: \[[A-Z_]+\])?$", re.MULTILINE
)
MIXED_OPERANDS = re.compile(
    r"found no matching overload for '_[^']+_' applied to"
    r" '\((?=.*\bdouble\b)(?=.*\b(?:int|uint)\b)(?:(?:bool|int|uint|double)(?:, |\)))+'"
)

DYNAMIC_RANGE = (
    "expression of type 'dyn' cannot be the range of a comprehension"
    " (must be list, map, or dynamic)"
)


def comprehension_variables(program: str) -> set[str]:
    """Names that `list.map(name, …)` and its like give to items."""
    return set(
        re.findall(
            r"\.\s*(?:all|exists|exists_one|map|filter|sortBy)\s*\(\s*([A-Za-z_]\w*)\s*,", program
        )
    )


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


def inline_bytes(program: str) -> int:
    """Up to how many bytes of values a program takes a few milliseconds at most; 0 for none.

    Each operation then costs no more than a look at all of the values, whatever they are: no
    regular expressions, nothing that builds much, few calls. A `contains` is the dearest of them.
    """
    tokens = [token for token in TOKEN.finditer(program) if not token["space"]]
    if len(tokens) > INLINE_TOKENS_MAX:
        return 0
    calls = _calls(tokens)
    loops = sum(call.is_loop for call in calls)
    texts = [token[0] for token in tokens]
    additions = texts.count("+")
    if len(calls) > INLINE_CALLS_MAX or not all(call.is_cheap for call in calls):
        return 0
    # one loop inside another is one too many
    if additions > INLINE_ADDITIONS_MAX or loops > 1 or (loops and additions):
        return 0
    if loops and "map" in texts:
        return INLINE_MAP_BYTES if len(tokens) <= INLINE_MAP_TOKENS_MAX else 0
    return INLINE_LOOP_BYTES if loops else INLINE_BYTES


class _Call(NamedTuple):
    name: str
    is_method: bool
    in_loop: bool

    @property
    def is_loop(self) -> bool:
        return self.is_method and self.name in CHEAP_LOOPS

    @property
    def is_cheap(self) -> bool:
        if self.in_loop and self.name in LIST_FUNCTIONS:
            return False  # a look at every item for every item
        return self.name in (CHEAP_METHODS if self.is_method else CHEAP_FUNCTIONS)


def _calls(tokens: Sequence[re.Match[str]]) -> list[_Call]:
    """The functions that a program calls."""
    texts = [token[0] for token in tokens]
    calls: list[_Call] = []
    is_loop: list[bool] = []
    """Of each parenthesis that is open."""
    for i, text in enumerate(texts):
        if text == ")" and is_loop:
            is_loop.pop()
        if text != "(":
            continue
        if i and tokens[i - 1]["name"]:
            is_method = texts[i - 2 : i - 1] == ["."]
            qualified = "".join(texts[max(0, i - 3) : i])
            if is_method and qualified in FUNCTIONS:
                call = _Call(qualified, is_method=False, in_loop=any(is_loop))
            else:
                call = _Call(texts[i - 1], is_method=is_method, in_loop=any(is_loop))
            calls.append(call)
            is_loop.append(call.is_loop)
        else:
            is_loop.append(False)
    return calls


def plain_words(error: str) -> str:
    text = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", error.split("\n", maxsplit=1)[0])
    for pattern, replacement in PLAIN_WORDS:
        text = re.sub(pattern, replacement, text)
    return text[:300]


@lru_cache(maxsize=32)
def environment(names: tuple[str, ...]) -> Any:
    cel, config, extensions = _library()
    return cel.NewEnv(
        config=config, variables=dict.fromkeys(names, cel.Type.DYN), extensions=extensions
    )


@lru_cache(maxsize=1)
def _library() -> tuple[Any, Any, list[Any]]:
    """The library, the extensions of CEL and our own."""
    from cel_expr_python import cel  # noqa: PLC0415 -- only documents with conditions pay for it

    return cel, cel.NewEnvConfigFromYaml(EXTENSIONS), [extension(cel)]


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


programs = _Programs()


def cel_program(program: str, names: tuple[str, ...]) -> Any:
    """A compiled program, cached for a while.

    Raises `ValueError` for an expression that can't be compiled.
    """
    key = (program, names)
    compiled = programs.get(key)
    if compiled is None:
        compiled = _compile(program, names)
        programs.add(key, compiled)
    return compiled


def _compile(program: str, names: tuple[str, ...]) -> Any:
    try:
        return environment(names).compile(program)
    except RuntimeError as error:
        text = str(error)
    if not _is_about_types(text):
        raise ValueError(text)
    # all names are known: only its type check stands in the way
    return environment(names).compile(program, disable_check=True)


def _is_about_types(error: str) -> bool:
    """Whether all that CEL refuses are types that it evaluates all the same.

    A whole number beside a decimal one, as in `size(x) > 1.5`: it compares them, as long as it
    doesn't know the types beforehand. And `nodes["a"].filter(…).map(…)`: its check takes the item
    of a variable for something that has no items.
    """
    reasons = CEL_ERROR.findall(error)
    harmless = [MIXED_OPERANDS.match(reason) or reason == DYNAMIC_RANGE for reason in reasons]
    return bool(harmless) and all(harmless)


def evaluate_cel(program: str, values: dict[str, Any]) -> Any:
    """The plain value. Raises `Missing` for an error while evaluating."""
    failed, result = run_program(program, values)
    if failed:
        reason = reason_of(result, program, values)
        raise Missing(f"the expression {program!r} can't be evaluated: {reason}")
    return result.plain_value()


def run_program(program: str, values: dict[str, Any]) -> tuple[bool, Any]:
    """Whether it failed, and CEL's value or what went wrong."""
    compiled = cel_program(program, tuple(sorted(values)))
    failed, result = evaluate_program(compiled, data=values)
    if failed and "out of range" in str(result):
        return evaluate_program(compiled, data=integers_fitted(values))
    return failed, result


def evaluate_program(compiled: Any, **values: Any) -> tuple[bool, Any]:
    try:
        result = compiled.eval(**values)
        failed = kind_of_result(result) == "ERROR"
        return failed, result.plain_value() if failed else result
    except RuntimeError as error:
        return True, error


def kind_of_result(result: Any) -> str:
    return type_name(result.type())


def type_name(kind: Any) -> str:
    return str(kind.name()).partition("<")[0]


def reason_of(error: object, program: str, values: dict[str, Any]) -> str:
    text = plain_words(str(error))
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


def integers_fitted(value: Any) -> Any:
    """The value with integers of more than 64 bits, which CEL doesn't have, as floats."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -INTEGER_MAX <= value <= INTEGER_MAX else float(value)
    if isinstance(value, dict):
        return {key: integers_fitted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [integers_fitted(item) for item in value]
    return value


def to_json(value: Any) -> Any:  # noqa: PLR0911 -- a table
    """A value as CEL's own mapping to JSON has it.

    Bytes are in base64, times are text, durations are in seconds. Keys are in the order of their
    text, as CEL gives them in another order in each process. Raises `Missing`.
    """
    match value:
        case dict():
            texts = {
                key if isinstance(key, str) else str(to_json(key)): item
                for key, item in value.items()
            }
            return {key: to_json(texts[key]) for key in sorted(texts)}
        case list():
            return [to_json(item) for item in value]
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return f"{value.total_seconds():g}s"
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
    text = str(value)[:100]
    raise Missing(f"the result of the expression is {text}, which JSON can't represent")
