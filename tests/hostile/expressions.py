"""Expressions that compute for as long or take as much memory as they can.

Add to these lists what you find.

Each is a condition or an expression of `transform`, and the input that it needs. None of them may
hold a loop, take memory in a process that others need, or end in anything but a clear failure of
its own node (or a result, if it turns out to be cheap enough).
"""

from __future__ import annotations

from typing import Any, NamedTuple

NESTED_COUNTS = "((a|b|c|d){1,50}){1,20}y"
"""A pattern that takes 18 to 53 s for a MB of text."""
LONG_TEXT = "abcd" * 250_000
MANY_VALUES = [1] * 300_000


class Hostile(NamedTuple):
    name: str
    source: str
    input: dict[str, Any]
    limit: str = (
        "(computing time|memory|no result|result has|can't be (evaluated|read)|too large"
        "|refers to|more than)"
    )
    """What the message of its failure has in it, if it fails."""


CONDITIONS = [
    Hostile("a pattern of nested counts", f"input.s.matches('{NESTED_COUNTS}')", {"s": LONG_TEXT}),
    Hostile(
        "the same many times",
        "||".join([f"input.s.matches('{NESTED_COUNTS}z')"] * 80),
        {"s": LONG_TEXT},
    ),
    Hostile(
        "a pattern from the input", "input.s.matches(input.p)", {"s": LONG_TEXT, "p": NESTED_COUNTS}
    ),
    Hostile("a pattern as a function", f"matches(input.s, r'{NESTED_COUNTS}')", {"s": LONG_TEXT}),
    Hostile(
        "classes of characters", r"input.s.matches(r'((\pL{1,30}){1,30}){1,10}!')", {"s": LONG_TEXT}
    ),
    Hostile(
        "a pattern of 2 MB", "input.s.matches(input.p)", {"s": LONG_TEXT, "p": "(a?)" * 500_000}
    ),
    Hostile(
        "a pattern for each item",
        f"input.l.all(x, x.matches('{NESTED_COUNTS}'))",
        {"l": [LONG_TEXT] * 8},
    ),
    Hostile(
        "text in a list, again and again",
        "input.l.map(x, input.s + input.s) == []",
        {"l": [1] * 9000, "s": LONG_TEXT},
    ),
    Hostile("sums of text", "+".join(["input.s"] * 30) + " == ''", {"s": LONG_TEXT * 2}),
    Hostile("lists of lists", "[" + ",".join(["input.v"] * 400) + "] == [1]", {"v": MANY_VALUES}),
    Hostile(
        "membership for each item",
        "input.l.all(x, !(2 in input.v))",
        {"l": [1] * 9000, "v": MANY_VALUES},
    ),
    Hostile(
        "equality of large lists",
        "&&".join(["input.v == input.w"] * 200),
        {"v": MANY_VALUES, "w": [*MANY_VALUES]},
    ),
    Hostile("text of values", "&&".join(["string(input.s) != 'x'"] * 150), {"s": LONG_TEXT * 4}),
    Hostile(
        "a needle in hay of its own kind",
        "||".join(["input.s.contains(input.t)"] * 100),
        {"s": "a" * 1_000_000, "t": "a" * 500_000 + "b"},
    ),
    Hostile("a sort of a long list", "sort(input.v) == [1]", {"v": MANY_VALUES}),
    Hostile(
        "sorts inside a filter",
        "input.l.filter(x, sort(input.v)[0] == x) == []",
        {"l": [1] * 9000, "v": MANY_VALUES},
    ),
    Hostile(
        "sums inside a filter",
        "input.l.all(x, sum(input.v) > x)",
        {"l": [1] * 9000, "v": MANY_VALUES},
    ),
    Hostile("distinct items", "input.v.distinct() == [1]", {"v": list(range(100_000))}),
    Hostile("a list of a billion", "lists.range(1000000000) == []", {}),
    Hostile(
        "a text in place of each character", "input.s.replace('', input.s) == ''", {"s": LONG_TEXT}
    ),
    Hostile(
        "a join with a large separator",
        "join(input.v, input.s) == ''",
        {"s": LONG_TEXT, "v": MANY_VALUES},
    ),
    Hostile("a split into characters", "input.s.split('') == []", {"s": LONG_TEXT * 4}),
    Hostile("a wide format", "'%.1000f'.format([input.n]) == ''", {"n": 1.5}),
    Hostile(
        "base64 of base64",
        "base64.encode(bytes(" * 10 + "input.s" + "))" * 10 + " == ''",
        {"s": LONG_TEXT},
    ),
    Hostile(
        "mixed numbers for each item",
        "input.v.map(x, x * 1.5 + x * 2.5 - x) == []",
        {"v": [1] * 9000},
    ),
    Hostile(
        "the older spelling", f"'{{{{ input.s }}}}'.matches('{NESTED_COUNTS}')", {"s": LONG_TEXT}
    ),
]

DOUBLED_LIST = "[[1,1,1,1]]" + ".map(x,x+x)" * 20
"""231 characters that take 10 s."""
TRANSFORMS = [
    Hostile("240 characters that double a text", "['aaaaaaaaaaaaaaaa']" + ".map(x,x+x)" * 20, {}),
    Hostile("231 characters that double a list", DOUBLED_LIST, {}),
    Hostile("doubling lists", "[1, 2]" + ".map(x, [x, x])" * 18, {}),
    Hostile("ten to the fourth", "a.v.map(x, a.v.map(y, a.v.map(z, a.v)))", {"v": [1] * 90}),
    Hostile("a pattern of nested counts", f"a.s.matches('{NESTED_COUNTS}')", {"s": LONG_TEXT}),
    Hostile("large copies", "a.l.map(x, a.s)", {"l": [1] * 9000, "s": LONG_TEXT}),
    Hostile("large copies as JSON", "[" + ",".join(["a.v"] * 200) + "]", {"v": MANY_VALUES}),
    Hostile("a list of a billion", "lists.range(1000000000)", {}),
    Hostile("flattened lists", "[" + ",".join(["a.v"] * 200) + "].flatten()", {"v": MANY_VALUES}),
    Hostile("texts in texts", "a.s" + ".replace('a', a.s)" * 3, {"s": "aaaa" * 1000}),
    Hostile("a very long sum", "+".join(["a.s"] * 30), {"s": LONG_TEXT * 3}),
]
TEMPLATES = [
    *TRANSFORMS,
    *(case for case in CONDITIONS if "{{" not in case.source),
    Hostile("a fallback after a minute", f"a.s.matches('{NESTED_COUNTS}') ?? 1", {"s": LONG_TEXT}),
    Hostile(
        "a large result", "[" + ",".join(["a.s"] * 100) + "]", {"s": LONG_TEXT}, "more than|memory"
    ),
]
"""As an expression in a template. Those that are conditions give true or false there too."""
