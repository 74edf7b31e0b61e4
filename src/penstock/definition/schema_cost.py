"""How much work a JSON Schema can make of a value, found by looking at the schema alone.

A validator tries every alternative of `anyOf` and follows every `$ref`, so a schema of 2 KB can be
unfolded into millions of checks. What is counted is how many subschemas may have to look at *one*
place of a value. Keywords that look at the same place (`allOf`, `anyOf`, `$ref`, …) add up; of
`properties` with different names only one looks at a place. A schema that refers to itself one
level deeper is counted level by level, as deep as a document may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

SCHEMA_BYTES_MAX = 256 * 1024
SUBSCHEMAS_MAX = 1000
CHECKS_MAX = 1000
"""How many subschemas may look at one place of a value."""
PATTERN_STATES_MAX = 20_000
"""Of all patterns of a schema together: their length, with what is repeated counted as often as it
is repeated.
"""
CHARACTER_NS_MAX = 1_000_000_000
DEPTH_MAX = 64

SAME_INSTANCE = ("not", "if", "then", "else")
SAME_INSTANCE_LISTS = ("allOf", "anyOf", "oneOf")
SAME_INSTANCE_MAPS = ("dependentSchemas", "dependencies")
OF_EVERY_PROPERTY = ("additionalProperties", "unevaluatedProperties", "propertyNames")
OF_EVERY_ITEM = ("items", "additionalItems", "unevaluatedItems", "contains")

# What checks were measured to cost, rounded up.
CHECK_NS = 75
COMPARED_NS = 200
UNIQUE_NS = 400
NAMED_NS = 10
STATE_NS = 15
STEADY_NS = 2
"""A character for a pattern that is always in one state, or in so few that all their combinations
are remembered.
"""
FEW_STATES = 12


class SchemaCost(msgspec.Struct, frozen=True):
    checks: int
    """Subschemas that may look at one place of a value."""
    value_ns: int
    """Nanoseconds for each value, at most, and for each of its characters."""
    character_ns: int
    states: int = 0
    """Of all its patterns: what they take to compile, and the memory that they keep."""

    def seconds(self, values: int, characters: int) -> float:
        return (values * self.value_ns + characters * self.character_ns) / 1e9


class _Subschema:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self.same_instance: list[int] = []
        self.named: list[int] = []
        """Of these one looks at a property; of `every_property`, all do. The same for items."""
        self.every_property: list[int] = []
        self.listed: list[int] = []
        self.every_item: list[int] = []
        # what is left unevaluated is found by evaluating once more
        again = "unevaluatedProperties" in schema or "unevaluatedItems" in schema
        self.times = 2 if again else 1
        patterns = _patterns_of(schema)
        self.states = sum(map(pattern_states, patterns))
        self.character_ns = sum(map(pattern_ns, patterns))
        self.own_ns = _own_ns(schema)


def cost_of(schema: Any) -> SchemaCost:
    """The cost of a schema, at most.

    Raises `ValueError` for a schema that may make more work than is allowed, with a text for the
    user.
    """
    size = len(msgspec.json.encode(schema))
    if size > SCHEMA_BYTES_MAX:
        raise ValueError(f"it has {size:,} bytes; the limit is {SCHEMA_BYTES_MAX:,}")
    if not isinstance(schema, Mapping):
        return SchemaCost(1, CHECK_NS, 0)
    subschemas = _Explorer(schema).subschemas

    states = sum(subschema.states for subschema in subschemas)
    if states > PATTERN_STATES_MAX:
        raise ValueError("its patterns are too large; use fewer or smaller counts in {…}")

    order = _innermost_first(subschemas)
    checks = _worst(subschemas, order, [1] * len(subschemas), CHECKS_MAX)
    if checks > CHECKS_MAX:
        raise ValueError(
            f"unfolded, more than {CHECKS_MAX:,} of its parts look at the same value;"
            " use fewer alternatives, or fewer references inside them"
        )

    character_costs = [subschema.character_ns for subschema in subschemas]
    character_ns = _worst(subschemas, order, character_costs, CHARACTER_NS_MAX)
    value_ns = checks * max(subschema.own_ns for subschema in subschemas)
    return SchemaCost(checks, value_ns, character_ns, states)


def _own_ns(schema: Mapping[str, Any]) -> int:
    cost = CHECK_NS
    options = _list(schema.get("enum"))
    if any(isinstance(option, (dict, list)) for option in options):
        cost += len(options) * COMPARED_NS
    for keyword in ("required", "properties"):
        names = _list(schema.get(keyword)) or _map(schema.get(keyword))
        cost += len(names) * NAMED_NS
    if schema.get("uniqueItems"):
        cost += UNIQUE_NS
    return cost


def _patterns_of(schema: Mapping[str, Any]) -> list[str]:
    patterns = [*_map(schema.get("patternProperties"))]
    if isinstance(schema.get("pattern"), str):
        patterns.append(schema["pattern"])
    return patterns


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class _Explorer:
    """Finds every subschema that can be reached, each once."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._numbers: dict[int, int] = {}
        self._anchors = _find_anchors(root)
        self.subschemas: list[_Subschema] = []
        self._number(root)
        done = 0
        while done < len(self.subschemas):
            self._explore(self.subschemas[done])
            done += 1

    def _explore(self, subschema: _Subschema) -> None:
        schema = subschema.schema
        if schema is not self._root and isinstance(schema.get("$id"), str):
            raise ValueError(
                "only the schema as a whole may have an $id;"
                " use $defs and references such as #/$defs/x"
            )
        subschema.same_instance = self._number_all(self._for_same_instance(schema))

        subschema.named = self._number_all(_map(schema.get("properties")).values())
        of_every_property = [
            *_map(schema.get("patternProperties")).values(),
            *(schema.get(name) for name in OF_EVERY_PROPERTY),
        ]
        subschema.every_property = self._number_all(of_every_property)

        listed = [*_list(schema.get("prefixItems")), *_list(schema.get("items"))]
        subschema.listed = self._number_all(listed)
        subschema.every_item = self._number_all(schema.get(name) for name in OF_EVERY_ITEM)

    def _for_same_instance(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        for name in SAME_INSTANCE:
            yield schema.get(name)
        for name in SAME_INSTANCE_LISTS:
            yield from _list(schema.get(name))
        for name in SAME_INSTANCE_MAPS:
            yield from _map(schema.get(name)).values()
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            raise ValueError("$dynamicRef and $recursiveRef aren't supported; use $ref")
        if isinstance(schema.get("$ref"), str):
            yield from self._follow_reference(schema["$ref"])

    def _follow_reference(self, reference: str) -> list[Any]:
        base_uri, _, fragment = reference.partition("#")
        if base_uri and base_uri != str(self._root.get("$id", "")).rstrip("#"):
            raise ValueError(
                f"a schema may not refer to another place ({reference[:200]}); put it under $defs"
            )

        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment, [])

        target: Any = self._root
        for step in fragment.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list):
                target = target[int(key)] if key.isdecimal() and int(key) < len(target) else None
            else:
                target = _map(target).get(key)
        return [target]

    def _number_all(self, schemas: Iterable[Any]) -> list[int]:
        return [self._number(schema) for schema in schemas if isinstance(schema, Mapping)]

    def _number(self, schema: Mapping[str, Any]) -> int:
        number = self._numbers.get(id(schema))
        if number is None:
            if len(self.subschemas) == SUBSCHEMAS_MAX:
                raise ValueError(f"it has more than {SUBSCHEMAS_MAX:,} parts, which is the limit")
            number = len(self.subschemas)
            self._numbers[id(schema)] = number
            self.subschemas.append(_Subschema(schema))
        return number


def _find_anchors(root: Mapping[str, Any]) -> dict[str, list[Any]]:
    anchors: dict[str, list[Any]] = {}
    waiting: list[Any] = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if isinstance(value.get("$anchor"), str):
                anchors.setdefault(value["$anchor"], []).append(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return anchors


def _innermost_first(subschemas: list[_Subschema]) -> list[int]:
    """The numbers of all subschemas, each after those that look at the same place for it.

    Raises `ValueError` if there is a circle.
    """
    new, open_, done = range(3)
    order: list[int] = []
    state = [new] * len(subschemas)
    for start in range(len(subschemas)):
        waiting = [start]
        while waiting:
            number = waiting[-1]
            if state[number] == new:
                state[number] = open_
                inner = [i for i in subschemas[number].same_instance if state[i] != done]
                if any(state[i] == open_ for i in inner):
                    raise ValueError("it refers to itself at the same place, which would never end")
                waiting.extend(inner)
            else:
                waiting.pop()
                if state[number] == open_:
                    state[number] = done
                    order.append(number)
    return order


def _worst(subschemas: list[_Subschema], order: list[int], own: list[int], limit: int) -> int:
    """The greatest sum of `own` over all subschemas that look at one place, at any depth.

    `limit` + 1 if it is more than the limit.
    """
    above = [0] * len(subschemas)
    worst = 0
    for depth in range(DEPTH_MAX + 1):
        here = [0] * len(subschemas)
        for number in order:
            subschema = subschemas[number]
            total = own[number] if depth == 0 else _one_level_deeper(subschema, above)
            total += subschema.times * sum([here[i] for i in subschema.same_instance])
            here[number] = min(total, limit + 1)
        worst = max(worst, here[0])
        if worst > limit or here == above or not any(here):
            break
        above = here
    return worst


def _one_level_deeper(subschema: _Subschema, above: list[int]) -> int:
    """The cost of what looks at one property or one item."""
    properties = sum([above[i] for i in subschema.every_property])
    properties += max([above[i] for i in subschema.named], default=0)
    items = sum([above[i] for i in subschema.every_item])
    items += max([above[i] for i in subschema.listed], default=0)
    return subschema.times * max(properties, items)


_COUNT = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_CLASS = re.compile(r"\[(?:[^\]\\]|\\.)*\]?", re.DOTALL)
_ATOM = r"(?:\[(?:[^\]\\]|\\.)*\]|\\[^pP]|[^\[\](){}*+?|\\^$])"
_STEADY = re.compile(
    rf"\^(?:{_ATOM}(?:\{{\d+\}})?)*(?:{_ATOM}(?:\{{\d+,\d*\}}|[*+?]))?\$?", re.DOTALL
)
"""One thing after another from the start of the text, and a choice at the end only:
`^[0-9a-f]{8}-[0-9a-f]{4}$`.
"""
_PROPERTY = re.compile(r"\\[pP](?:\{[^}]*\}|.)?")
_COMMENTS = re.compile(r"\(\?[a-zA-Z]*x")
PROPERTY_STATES = 20
"""`\\p{L}` and its like are hundreds of ranges of characters."""


def pattern_states(pattern: str) -> int:
    """About how many states an automaton for the pattern has: its length, counts multiplied out."""
    if _COMMENTS.search(pattern):
        # a mode in which blanks and comments are skipped: nobody needs it in a schema
        return PATTERN_STATES_MAX + 1
    groups = [0]
    last = 0
    position = 0
    while position < len(pattern):
        character = pattern[position]
        end = position + 1
        count = _COUNT.match(pattern, position)
        if character == "(":
            groups.append(0)
            last = 0
        elif character == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif count is not None:
            times = max(int(count[1]), int(count[2] or 0))
            groups[-1] += last * max(0, times - 1)
            last *= max(1, times)
            end = count.end()
        elif character not in "*+?|^$":
            last, end = _atom(pattern, position)
            groups[-1] += last
        position = end
    return min(sum(groups), PATTERN_STATES_MAX + 1)


def pattern_ns(pattern: str) -> int:
    """How long one character of a text may take."""
    states = pattern_states(pattern)
    is_steady = states <= FEW_STATES or _STEADY.fullmatch(pattern)
    return STEADY_NS if is_steady else states * STATE_NS


def _atom(pattern: str, position: int) -> tuple[int, int]:
    """How many states the character or class at `position` has, and where it ends."""
    character_class = _CLASS.match(pattern, position)
    if character_class is not None:
        properties = _PROPERTY.findall(character_class[0])
        return 1 + PROPERTY_STATES * len(properties), character_class.end()

    unicode_property = _PROPERTY.match(pattern, position)
    if unicode_property is not None:
        return PROPERTY_STATES, unicode_property.end()

    is_escape = pattern[position] == "\\"
    return 1, position + (2 if is_escape else 1)
