"""Hooks: what a request starts is made of its body, headers and query, and of nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.definition.hooks import CompiledHook, HookRequest, read_hook, run_filter
from penstock.definition.template import Missing
from penstock.errors import InvalidInput

VERIFY = {"scheme": "github", "secret": "GITHUB"}
REQUEST = HookRequest(
    body={"id": 7, "order": {"lines": [{"sku": "a"}], "output": 1}, "text": "{{ headers.x }}"},
    headers={"x-event": "paid"},
    query={"of": "shop"},
)


def hook(**fields: Any) -> CompiledHook:
    start = {"workflow": "w", "input": fields.pop("input", {})}
    return read_hook({"id": "h", "start": start, "verify": VERIFY, **fields})


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ body }}", REQUEST.body),
        ({"a": ["{{ body.id }}", 1, None, True]}, {"a": [7, 1, None, True]}),
        ({"a": "{{ body.order.lines[0].sku }} of {{ query.of }}"}, {"a": "a of shop"}),
        ({"a": "{{ headers.x-event }}"}, {"a": "paid"}),
        ({"a": '{{ headers["x-event"] }}'}, {"a": "paid"}),
        ({"a": '{{ headers.x-other ?? "none" }}'}, {"a": "none"}),
        ({"{{ body.id }}": "plain"}, {"{{ body.id }}": "plain"}),
        # what a request holds is data, and never read as a template
        ({"a": "{{ body.text }}"}, {"a": "{{ headers.x }}"}),
        ({"a": "{{ body.order.output }}"}, {"a": 1}),
        ({"a": ""}, {"a": ""}),
    ],
)
def test_templates_are_filled_in(template: Any, expected: Any) -> None:
    assert hook(input=template).fill(REQUEST).input == expected


@pytest.mark.parametrize("text", ["{{ body.nobody }}", "{{ query.nobody }}", "{{ body.id.x }}"])
def test_a_reference_that_finds_nothing_says_so(text: str) -> None:
    with pytest.raises(Missing, match=r"nobody|'x'"):
        hook(input={"a": text}).fill(REQUEST)


def test_what_is_filled_in_has_a_limit() -> None:
    large = HookRequest(body="x" * 1_000_000, headers={}, query={})
    with pytest.raises(Missing, match="refer to less"):
        hook(input={"a": "{{ body }}" * 5}).fill(large)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"id": "A"}, "id"),
        ({"id": "a/b"}, "id"),
        ({"id": ""}, "id"),
        ({"id": "a" * 65}, "id"),
        ({"start": None}, ""),
        ({"verify": None}, "verify"),
        ({"verify": {"scheme": "github", "secret": "half a name"}}, "verify.secret"),
        ({"verify": {"scheme": "github", "secret": ["GITHUB", "a-b"]}}, "verify.secret"),
        ({"verify": {"scheme": "hmac", "secret": "A"}}, "verify.header"),
        ({"verify": {"scheme": "md5", "secret": "A"}}, "verify.scheme"),
        ({"verify": "never"}, "verify"),
        ({"input": {"a": [{"b": "{{ input.x }}"}]}}, "start.input.a[0].b"),
        ({"input": {"a": "{{ secrets.GITHUB }}"}}, "start.input.a"),
        ({"input": {"a": "{{ execution.id }}"}}, "start.input.a"),
        ({"input": {"a": "{{ nodes.body.state }}"}}, "start.input.a"),
        ({"input": {"a": "{{ nobody.x }}"}}, "start.input.a"),
        ({"input": {"a": "{{ body.x + 1 }}"}}, "start.input.a"),
        ({"input": {"a": "{{ body.x"}}, "start.input.a"),
        ({"input": [1]}, "start.input"),
        ({"filter": "body.x =="}, "filter"),
        ({"filter": "execution.id == 'a'"}, "filter"),
        ({"filter": "{{ body.x }} == 1"}, "filter"),
        ({"filter": "nodes.body.state == 'a'"}, "filter"),
        ({"filter": "nobody.x"}, "filter"),
        ({"filter": "x" * 5000}, "filter"),
        ({"signal": {"name": "", "correlation": "a"}}, "signal.name"),
        ({"signal": {"name": "paid", "correlation": "{{ a.b }}"}}, "signal.correlation"),
        ({"answer": {"wait_seconds": -1}}, "answer.wait_seconds"),
        ({"answer": {"wait_seconds": float("nan")}}, "answer.wait_seconds"),
        ({"rate_limit": "0/minute"}, "rate_limit"),
        ({"rate_limit": "1/week"}, "rate_limit"),
        ({"challenge_secret": "no name"}, "verify.secret"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_path(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        hook(**fields)
    assert path in [problem.path for problem in raised.value.problems]


def test_a_secret_that_was_written_in_place_of_its_name_isnt_quoted() -> None:
    with pytest.raises(InvalidInput) as raised:
        hook(verify={"scheme": "github", "secret": "my-secret-value"})
    assert "my-secret-value" not in str(raised.value)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as raised:
        hook(id="A", filter="(", idempotency="{{ x }}", rate_limit="")
    paths = {problem.path for problem in raised.value.problems}
    assert paths == {"id", "filter", "idempotency", "rate_limit"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("body.id == 7 && headers['x-event'] == 'paid' && query.of == 'shop'", True),
        ("body.order.lines.exists(line, line.sku == 'b')", False),
        ("has(body.order.nobody)", False),
        ("!('x-other' in headers)", True),
        ("body.text.matches('headers')", True),
    ],
)
def test_a_filter_says_the_same_here_and_in_the_sandbox(source: str, *, expected: bool) -> None:
    filtered = hook(filter=source)
    assert filtered.lets_through(REQUEST) is expected
    (answer,) = run_filter(filtered.filter_job(REQUEST))
    assert msgspec.msgpack.decode(answer) is expected


def test_a_filter_that_cant_be_evaluated_says_why_here_and_in_the_sandbox() -> None:
    filtered = hook(filter="body.order.nobody.x == 1")
    with pytest.raises(Missing) as raised:
        filtered.lets_through(REQUEST)
    (answer,) = run_filter(filtered.filter_job(REQUEST))
    assert msgspec.msgpack.decode(answer) == str(raised.value)


def test_only_a_filter_that_is_cheap_for_this_request_is_evaluated_at_once() -> None:
    assert hook(filter="body.id == 7").is_cheap(REQUEST)
    assert not hook(filter="body.text.matches('a')").is_cheap(REQUEST)
    large = HookRequest(body={"text": "x" * 100_000, "id": 7}, headers={}, query={})
    assert not hook(filter="body.text.contains('a')").is_cheap(large)
    # only what it looks at counts
    assert hook(filter="body.id == 7").is_cheap(large)


@pytest.mark.parametrize(
    ("value", "name"), [("a", "a"), (7, "7"), (" a", " a"), ("é" * 512, "é" * 512)]
)
def test_a_message_is_named_by_text_or_a_whole_number(value: Any, name: str) -> None:
    request = HookRequest(body={"id": value}, headers={}, query={})
    assert hook(idempotency="{{ body.id }}").message_name(request) == name
    assert hook().message_name(request) is None


@pytest.mark.parametrize("value", [None, True, 1.5, "", " ", [], {}, "x" * 513])
def test_nothing_else_names_a_message(value: Any) -> None:
    request = HookRequest(body={"id": value}, headers={}, query={})
    with pytest.raises(Missing, match="idempotency"):
        hook(idempotency="{{ body.id }}").message_name(request)


@pytest.mark.parametrize(("value", "expected"), [("order-7", "order-7"), (7, "7")])
def test_a_signal_has_a_correlation_and_by_default_the_body(value: Any, expected: str) -> None:
    request = HookRequest(body={"order": value}, headers={}, query={})
    signal = {"name": "paid", "correlation": "{{ body.order }}"}
    filled = hook(signal=signal).fill(request)
    assert (filled.correlation, filled.payload) == (expected, {"order": value})


@pytest.mark.parametrize("value", [None, "", "x" * 600, {}])
def test_a_correlation_that_is_none_is_the_requests_error(value: Any) -> None:
    request = HookRequest(body={"order": value}, headers={}, query={})
    with pytest.raises(Missing, match="correlation"):
        hook(signal={"name": "paid", "correlation": "{{ body.order }}"}).fill(request)
