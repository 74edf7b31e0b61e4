"""Documents and requests that cost the service as much as they can.

They make it compute, remember or store.

Whoever has a key of scope `submit` may send each of these. Add to `KIT` what you find. Expressions
alone are in `expressions.py`; these are for whole roles. What an attack is judged by is in
`test_roles.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tests.hostile.expressions import DOUBLED_LIST, LONG_TEXT, MANY_VALUES, NESTED_COUNTS

KB, MB = 1000, 1000 * 1000
ONCE = {"max_attempts": 1}
AT_ONCE = {"initial_delay_seconds": 0, "max_delay_seconds": 0, "jitter_seconds": 0}
START = "/api/v1/executions"


class Post(NamedTuple):
    path: str
    body: bytes


class Attack(NamedTuple):
    name: str
    posts: Callable[[str], Iterable[Post]]
    """Given the address of a server that answers `/json/<bytes>` and `/text/<bytes>`."""
    stored_bytes: int = 0
    """That handlers bring in from elsewhere, on top of what is sent."""


def start(nodes: list[dict[str, Any]], **fields: Any) -> Post:
    """Starts a document; `fields` are those of the request, or of the document."""
    of_request = {key: fields.pop(key) for key in ("input", "labels") if key in fields}
    definition = {"name": "hostile", "nodes": nodes, **fields}
    return Post(START, json.dumps({"definition": definition, **of_request}).encode())


def node(node_id: str, handler: str = "noop", *after: str, **fields: Any) -> dict[str, Any]:
    return {"id": node_id, "handler": handler, "dependencies": list(after), "retry": ONCE, **fields}


# expressions


def _patterns(flood_address: str) -> Iterable[Post]:
    condition = f"input.s.matches('{NESTED_COUNTS}')"
    for _ in range(3):
        yield start([node("a", condition=condition)], input={"s": LONG_TEXT})


def _condition_memory(_: str) -> Iterable[Post]:
    source = "input.l.map(x, input.s + input.s) == []"
    yield start([node("a", condition=source)], input={"l": [1] * 9000, "s": LONG_TEXT})
    yield start(
        [node("a", condition="[" + ",".join(["input.v"] * 400) + "] == [1]")],
        input={"v": MANY_VALUES},
    )


def _transforms(_: str) -> Iterable[Post]:
    sources = (
        DOUBLED_LIST,
        "[1, 2]" + ".map(x, [x, x])" * 18,
        "input.l.map(x, input.s)",
        "[" + ",".join(["input.s"] * 90) + "]",
        f"input.s.matches('{NESTED_COUNTS}')",
    )
    for source in sources:
        nodes = [
            node("input", "input"),
            node("a", "transform", "input", config={"expression": source}),
        ]
        yield start(nodes, input={"l": [1] * 9000, "s": LONG_TEXT})


def _many_conditions(_: str) -> Iterable[Post]:
    nodes = [node(f"n{i}", condition=f"size(input.v) == {i}") for i in range(200)]
    yield start(nodes, input={"v": MANY_VALUES})


def _conditions_of_9_mb(_: str) -> Iterable[Post]:
    condition = (
        "input.a == '" + "x" * 3500 + "' || " + " || ".join(f"input.b == {i}" for i in range(20))
    )
    nodes = [node(f"n{i}", condition=f"{condition} || input.c == {i}") for i in range(2_300)]
    yield start(nodes, input={"a": 1})


# schemas


def _doubling_schema() -> dict[str, Any]:
    doubled = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(24)}
    return {"$defs": {**doubled, "d24": {"type": "string"}}, "$ref": "#/$defs/d0"}


def _pattern_schema() -> dict[str, Any]:
    return {"properties": {"s": {"pattern": "^((a|b|c|d)+)+(a*)*y$"}}}


def _schemas(_: str) -> Iterable[Post]:
    for schema in (
        _doubling_schema(),
        _pattern_schema(),
        {"items": _doubling_schema()},
        {"properties": {f"p{i}": {"pattern": "(a{1,99}){1,99}"} for i in range(900)}},
        {"uniqueItems": True},
        {"properties": {"l": {"uniqueItems": True}}},
    ):
        values = {"s": LONG_TEXT, "l": [{"a": [i]} for i in range(30_000)]}
        yield start([node("a")], input=values, input_schema=schema)
        config = {"prompt": "?", "model": "m", "response_schema": schema}
        yield start([node("a", "llm_service", config=config)])


# what is kept


def _attempts(_: str) -> Iterable[Post]:
    retry = {"max_attempts": 1000, **AT_ONCE}
    nodes = [
        node(f"n{i}", "fail", config={"message": "long " * 900}) | {"retry": retry}
        for i in range(2)
    ]
    yield start(nodes)


def _labels(_: str) -> Iterable[Post]:
    yield start([node("a")], labels={"a": "x" * 10 * MB})
    yield start([node("a")], labels={"x" * 10 * MB: "a"})
    yield start([node("a")], labels={f"l{i}": "x" * 100 * KB for i in range(64)})
    yield start([node("a")], labels={"a": {"deep": ["x" * KB] * 1000}})


def _one_output_many_times(_: str) -> Iterable[Post]:
    config = {f"k{i}": "{{ input.s }}" for i in range(50)}
    yield start(
        [node("a", "echo", config=config), node("b", "echo", "a", config=config)],
        input={"s": "x" * 5 * MB},
    )


def _output_in_many_nodes(_: str) -> Iterable[Post]:
    nodes = [node(f"n{i}", "echo", config={"x": "{{ input.s }}"}) for i in range(60)]
    yield start(
        [*nodes, node("end", "noop", *[f"n{i}" for i in range(60)])], input={"s": "x" * 5 * MB}
    )


def _chain_that_doubles(_: str) -> Iterable[Post]:
    nodes = [node("n0", "echo", config={"x": "x" * 1000})]
    for i in range(1, 40):
        reference = f"{{{{ n{i - 1}.x }}}}"
        nodes.append(node(f"n{i}", "echo", f"n{i - 1}", config={"x": reference + reference}))
    yield start(nodes)


def _chain_of_lists_that_doubles(_: str) -> Iterable[Post]:
    nodes = [node("n0", "echo", config={"x": ["x" * 1000]})]
    for i in range(1, 40):
        reference = f"{{{{ n{i - 1}.x }}}}"
        nodes.append(node(f"n{i}", "echo", f"n{i - 1}", config={"x": [reference, reference]}))
    yield start(nodes)


def _output_handler(_: str) -> Iterable[Post]:
    nodes = [node("a", "echo", config={"x": "x" * 2 * MB})]
    nodes += [node("out", "output", "a", config={f"k{i}": "{{ a }}" for i in range(200)})]
    yield start(nodes)


# documents


def _near_miss_names(_: str) -> Iterable[Post]:
    names = ["ab" * 100 + f"{i:03}" for i in range(60)]
    nodes = [node(name) for name in names]
    nodes += [node("z" + name, "noop", *[f"{other}x" for other in names]) for name in names[:40]]
    yield start(nodes)
    yield start([node(f"n{i}", f"ecko{i}" * 20) for i in range(900)])
    yield start([node("a") | {f"dependencie{i}": 1 for i in range(2000)}])
    yield start([node("a", "echo", config={name: f"{{{{ {name}y }}}}" for name in names})])


def _many_nodes(_: str) -> Iterable[Post]:
    nodes = [
        {"id": f"n{i}", "handler": "noop", "dependencies": [f"n{i - 1}"] if i else []}
        for i in range(100_000)
    ]
    yield start(nodes, timeout_seconds=1)


def _many_large_documents(_: str) -> Iterable[Post]:
    for number in range(6):
        nodes = [
            {"id": f"n{i}", "handler": "noop", "dependencies": [f"n{i - 1}"] if i else []}
            for i in range(30_000)
        ]
        yield start(nodes, description=f"{number}", timeout_seconds=1)


def _wide_edges(_: str) -> Iterable[Post]:
    first = [{"id": f"a{i}", "handler": "noop"} for i in range(300)]
    names = [parent["id"] for parent in first]
    second = [{"id": f"b{i}", "handler": "noop", "dependencies": names} for i in range(300)]
    yield start([*first, *second], timeout_seconds=1)


def _deep(_: str) -> Iterable[Post]:
    for text in (
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 500_000 + "1" + "}" * 500_000,
        "[" * 8 * MB,
    ):
        yield Post(START, f'{{"definition":{{"nodes":[]}},"input":{{"x":{text}}}}}'.encode())


def _many_values(_: str) -> Iterable[Post]:
    yield Post(
        START,
        b'{"definition":{"nodes":[{"id":"a","handler":"noop"}]},"input":{"x":['
        + b"[]," * 500_000
        + b"1]}}",
    )
    keys = b",".join(b'"%d":1' % i for i in range(200_000))
    yield Post(
        START, b'{"definition":{"nodes":[{"id":"a","handler":"noop"}]},"input":{' + keys + b"}}"
    )
    yield Post(
        START,
        b'{"definition":{"nodes":[{"id":"a","handler":"noop"}]},' + b'"k":1,' * 2 * MB + b'"l":1}',
    )
    digits = b"9" * 5 * MB
    yield Post(
        START,
        b'{"definition":{"nodes":[{"id":"a","handler":"noop"}]},"input":{"x":' + digits + b"}}",
    )


def _characters(_: str) -> Iterable[Post]:
    yield from _as_every_name(
        "\0", "\ud800", "\udfff\0" * 50_000, "\u2028", "x" * 300, "../" * 90, "{{" * 50_000
    )
    yield Post(START, b'{"definition":\xff\xfe}')
    yield Post(START, b"\0" * MB)


def _long_names(_: str) -> Iterable[Post]:
    yield from _as_every_name("x" * 5 * MB)


def _as_every_name(*texts: str) -> Iterable[Post]:
    for text in texts:
        yield start([node("a")], name=text)
        yield start([node(text)])
        yield start([node("a", text)])
        yield start([node("a", "echo", config={"x": text, text: 1})])
        yield start([node("a", "noop", text)])
        yield start([node("a", queue=text)])
        yield start([node("a")], labels={text: text}, input={text: text})


def _templates(_: str) -> Iterable[Post]:
    yield start([node("a", "echo", config={"x": "{{ " * 400_000})])
    yield start([node("a", "echo", config={"x": "{{ input.s }}" * 100_000})], input={"s": "x" * KB})
    yield start([node("a", "echo", config={"x": "{{ input" + ".a" * 500_000 + " }}"})])
    yield start(
        [node("a", "echo", config={f"k{i}": "{{ input.s[0:9] | upper }}" for i in range(50_000)})]
    )


# requests


def _batches(_: str) -> Iterable[Post]:
    definition = {"name": "hostile", "nodes": [node("a", "echo", config={"x": "{{ input.s }}"})]}
    items: list[Any] = [{"input": {"s": "x" * 5 * KB}}] * 1000
    yield Post(
        f"{START}/batch", json.dumps({"definition": definition, "executions": items}).encode()
    )
    item = {"definition": {"nodes": [node(f"n{i}") for i in range(10)], "name": "hostile"}}
    items = [item | {"labels": {"n": str(i)}} for i in range(1000)]
    yield Post(f"{START}/batch", json.dumps({"executions": items}).encode())


def _wrong_batch(_: str) -> Iterable[Post]:
    for wrong in (
        {"definition": 1},
        {"x": "x" * 10 * KB},
        {"workflow": "w" * 1000},
        {"labels": {"a": 1}},
    ):
        yield Post(f"{START}/batch", json.dumps({"executions": [wrong] * 1000}).encode())


# what comes from elsewhere


def _large_answers(flood_address: str) -> Iterable[Post]:
    for kind, size in (("json", 60 * MB), ("json", 70 * MB), ("text", 60 * MB)):
        yield start(
            [
                node(
                    "a", "call_external_service", config={"url": f"{flood_address}/{kind}/{size}"}
                ),
                node("b", "noop", "a", condition="size(a.data) > 1"),
            ]
        )


def _endless_answers(flood_address: str) -> Iterable[Post]:
    yield start([node("a", "call_external_service", config={"url": f"{flood_address}/endless"})])
    yield start([node("a", "call_external_service", config={"url": f"{flood_address}/headers"})])
    yield start([node("a", "call_external_service", config={"url": f"{flood_address}/deep"})])
    yield start([node("a", "call_external_service", config={"url": f"{flood_address}/gzip"})])


KIT = [
    Attack("patterns of nested counts", _patterns),
    Attack("conditions that take memory", _condition_memory),
    Attack("transforms that take time and memory", _transforms),
    Attack("200 conditions over 300,000 values", _many_conditions),
    Attack("9 MB of conditions", _conditions_of_9_mb),
    Attack("schemas that double and backtrack", _schemas),
    Attack("1,000 attempts with long messages", _attempts),
    Attack("labels of 10 MB", _labels),
    Attack("a config that has one value 50 times", _one_output_many_times),
    Attack("a value in the output of 60 nodes", _output_in_many_nodes),
    Attack("a chain of texts that double", _chain_that_doubles),
    Attack("a chain of lists that double", _chain_of_lists_that_doubles),
    Attack("an output that has one value 200 times", _output_handler),
    Attack("names that are nearly right", _near_miss_names),
    Attack("a chain of 100,000 nodes", _many_nodes),
    Attack("six documents of 30,000 nodes", _many_large_documents),
    Attack("90,000 edges", _wide_edges),
    Attack("deep JSON", _deep),
    Attack("hundreds of thousands of values", _many_values),
    Attack("NUL, surrogates and paths as names", _characters),
    Attack("names of 5 MB", _long_names),
    Attack("templates", _templates),
    Attack("batches of 1,000", _batches),
    Attack("wrong batches of 1,000", _wrong_batch),
    Attack("answers of 60 MB", _large_answers, 60 * MB * 2),
    Attack("answers without end", _endless_answers, 64 * MB),
]
