"""What a condition looks at, how much of it is cheap, and what is bound instead of pasted."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition import cel
from penstock.definition.cel import INLINE_BYTES, INLINE_LOOP_BYTES, inline_bytes, size_of
from penstock.definition.condition import compile_condition, looked_at, merged
from penstock.definition.expression import bind_references
from penstock.definition.plan import compile_document
from penstock.definition.template import TemplateError
from penstock.errors import InvalidWorkflow
from tests.definition.documents import Outputs, node, plan_of, problem_of, workflow

KNOWN = ("vip", "user", "a b")


class TestWhatIsLookedAt:
    @pytest.mark.parametrize(
        ("program", "paths"),
        [
            ("input.a.b > 1", {"input": {"a": {"b": {}}}}),
            ("input.a.b > 1 && input.a.c > 1", {"input": {"a": {"b": {}, "c": {}}}}),
            ("input.a.b > 1 && size(input.a) > 1", {"input": {"a": {}}}),
            ("size(input) > 1 && input.a", {"input": {}}),
            ("input.a && size(input) > 1", {"input": {}}),
            ("input . a // comment\n . b", {"input": {"a": {"b": {}}}}),
            ("input.list[0].x", {"input": {"list": {}}}),
            ('input["key"].x', {"input": {}}),
            ("input.text.startsWith('a')", {"input": {"text": {}}}),
            ("has(input.a.b)", {"input": {"a": {"b": {}}}}),
            ('nodes["a b"].x.y', {"nodes": {"a b": {"x": {"y": {}}}}}),
            ("x.input.y", {}),
            ("'input.a' == 'x'", {}),
            ("params.a", {"params": {"a": {}}}),
        ],
    )
    def test_is_the_paths_behind_the_variables(self, program: str, paths: Any):
        assert looked_at(program) == paths

    @pytest.mark.parametrize(
        ("paths", "other", "both"),
        [
            ({"a": {"b": {}}}, {"a": {"c": {}}}, {"a": {"b": {}, "c": {}}}),
            ({"a": {}}, {"a": {"c": {}}}, {"a": {}}),
            ({"a": {"c": {}}}, {"a": {}}, {"a": {}}),
            ({}, {"a": {"c": {}}}, {"a": {"c": {}}}),
        ],
    )
    def test_by_two_conditions_is_what_either_looks_at(self, paths: Any, other: Any, both: Any):
        assert merged(paths, other) == both

    def test_is_all_that_is_converted(self):
        value = {"a": {"b": 1, "rest": ["x"] * 1000}, "rest": 2}
        condition = compile_condition(
            "input.a.b == 1 && user.data.name != '' && !has(user.data.none)", KNOWN
        )
        scope = Outputs(
            {"user": {"data": {"name": "Ann", "rest": 1}, "rest": 1}}, input_value=value
        )
        values = condition.bind(scope)
        assert (values["input"], values["nodes"]) == (
            {"a": {"b": 1}},
            {"user": {"data": {"name": "Ann"}}},
        )
        assert condition.decide(values, scope)


class TestWhatIsCheap:
    @pytest.mark.parametrize(
        "program",
        [
            "vip.result",
            "input.a == 'x' && size(input.b) > 3",
            "has(input.a) || input.b in [1, 2]",
            "int(input.a) > 3",
            "input.a.contains('x')",
            "input.a + 1 > 3",
        ],
    )
    def test_is_what_looks_at_its_values_a_few_times(self, program: str):
        assert inline_bytes(program) == INLINE_BYTES

    def test_is_less_with_a_loop(self):
        assert inline_bytes("input.a.exists(x, x > 3)") == INLINE_LOOP_BYTES
        assert 0 < inline_bytes("input.a.map(x, x * 2)") < INLINE_LOOP_BYTES

    @pytest.mark.parametrize(
        "program",
        [
            "input.a.matches('x')",
            "matches(input.a, 'x')",
            "input.a . matches ( 'x' )",
            "input.l.map(x, [" + "x," * 40 + "x])[0]",
            "input.l.exists(x, input.l.exists(y, x == y))",
            "input.l.exists(x, x + 'a' == '')",
            "bytes(input.a) == b''",
            "+".join(["input.a"] * 6) + " == ''",
            "&&".join(["input.a.contains(input.b)"] * 17),
            "!" * 250 + "true",
            "input.a./* */matches('x')",
            "input.l.//\nmap(x, x.map(y, y)) == []",
            "unknown(input.a)",
        ],
    )
    def test_is_nothing_that_may_take_long(self, program: str):
        assert inline_bytes(program) == 0

    def test_the_smallest_values_count_too(self):
        assert size_of([[]] * 1000, 10**9) > 10_000
        assert size_of({"": ""}, 10**9) > 10
        assert 1000 < size_of(["x" * 100] * 10**6, 1000) < 10_000


@pytest.mark.parametrize(
    ("program", "cheap_bytes"),
    [
        ("sum(input.v) > 1.5", INLINE_BYTES),
        ("math.round(input.n) == 2.0 && max(input.v) < min(input.w)", INLINE_BYTES),
        ("sort(input.v)[0] == 1", INLINE_BYTES),
        ("input.s.trim().lowerAscii() == 'a'", INLINE_BYTES),
        ("sum(input.v.filter(x, x > 1.5)) > 1", INLINE_LOOP_BYTES),
        ("input.v.filter(x, x > 1.5).sum() > 1", INLINE_LOOP_BYTES),
        ("input.v.filter(x, x > sum(input.v)) == []", 0),
        ("input.v.filter(x, x > (input.w.max())) == []", 0),
        ("join(input.v, ',') == ''", 0),
        ("input.v.distinct() == []", 0),
        ("input.v.sort() == []", 0),
        ("lists.range(9) == []", 0),
        ("input.round() == 1", 0),
        ("'%s'.format([1]) == '1'", 0),
    ],
)
def test_functions_that_cost_more_than_a_look_are_not_cheap(program: str, cheap_bytes: int):
    assert inline_bytes(program) == cheap_bytes


def test_compiled_programs_are_cached_by_their_length():
    for number in range(300):
        compile_condition(f"input.a == {number} || '{'x' * 3000}' == input.b", KNOWN)
    cache = cel.programs
    assert sum(len(program) for program, _ in cache) <= cel.PROGRAMS_CHARACTERS_MAX
    assert cache.characters <= cel.PROGRAMS_CHARACTERS_MAX
    for number in range(3000):
        compile_condition(f"input.a == {number}", KNOWN)
    assert len(cache) <= cel.PROGRAMS_MAX


class TestReferencesInAnExpression:
    @pytest.mark.parametrize(
        ("expression", "rewritten", "rendered"),
        [
            ("{{ user.n }} * 2", "__0 * 2", [3]),
            ("'{{ user.name }}' == 'x'", "__0 == 'x'", ["Ann"]),
            ("'{{ user.n }}' == '3'", "__0 == '3'", ["3"]),
            ("'Dear {{ user.name }}, {{ user.n }}' + '!'", "__0 + '!'", ["Dear Ann, 3"]),
            ('r"""\\{{ user.name }}""" + {{ user.n }}', "__0 + __1", ["\\Ann", 3]),
            ("{{ user.none ?? [1] }} + {{ user.none ?? [2] }}", "__0 + __1", [[1], [2]]),
        ],
    )
    def test_become_variables(self, expression: str, rewritten: str, rendered: list[Any]):
        plan_node = plan_of(
            node("user"), node("t", "user", handler="transform", config={"expression": expression})
        ).nodes[1]
        config, _ = plan_node.config.resolve(Outputs({"user": {"n": 3, "name": "Ann"}}))
        assert config == {
            "expression": rewritten,
            "variables": {f"__{i}": value for i, value in enumerate(rendered)},
        }
        assert plan_node.needs == {"user"}

    def test_leave_given_variables_alone(self):
        config = {"expression": "{{ user.n }} + __0", "variables": {"__0": 1, "x": "{{ user.n }}"}}
        plan_node = plan_of(
            node("user"), node("t", "user", handler="transform", config=config)
        ).nodes[1]
        resolved, _ = plan_node.config.resolve(Outputs({"user": {"n": 3}}))
        assert resolved == {"expression": "__1 + __0", "variables": {"__0": 1, "__1": 3, "x": 3}}

    @pytest.mark.parametrize(
        "expression", [r"'\n{{ vip.x }}'", "b'{{ vip.x }}'", "'a' + '{{ vip.x }}\0'", "{{ vip.x"]
    )
    def test_that_cannot_be_bound_are_refused(self, expression: str):
        with pytest.raises(TemplateError):
            bind_references(expression, KNOWN, {})

    def test_are_reported_where_they_are_written(self):
        problem = problem_of(
            node("user"),
            node("t", "user", handler="transform", config={"expression": "{{ usr.n }}"}),
        )
        assert (problem.code, problem.path) == ("unknown_reference", "nodes[1].config.expression")
        problem = problem_of(
            node("t", handler="transform", config={"expression": "{{ user.n }}"}),
            node("user", "t"),
        )
        assert (problem.code, problem.path) == ("cycle", "nodes[0].config.expression")

    def test_of_another_handler_are_templates_as_ever(self):
        plan_node = plan_of(
            node("user"), node("t", "user", config={"expression": "{{ user.n }} + 1"})
        ).nodes[1]
        assert plan_node.config.resolve(Outputs({"user": {"n": 3}}))[0] == {"expression": "3 + 1"}


SECRET = "{{ secrets.TOKEN }}"
GIVEN_AWAY = [
    ("transform", {"expression": f"bytes('{SECRET}')"}),
    ("transform", {"expression": f"'{SECRET}'.startsWith('a')"}),
    ("transform", {"expression": f"{SECRET} +"}),
    ("transform", {"expression": "x", "variables": {"x": SECRET}}),
    ("transform", {"value": {"deep": [SECRET]}}),
    ("echo", {"x": f"Bearer {SECRET}"}),
    ("fail", {"message": SECRET}),
    ("sleep", {"seconds": SECRET}),
]


@pytest.mark.parametrize(("handler", "config"), GIVEN_AWAY)
def test_a_secret_where_something_is_computed_or_kept_is_refused(
    handler: str, config: dict[str, Any]
):
    problem = problem_of(node("a", handler=handler, config=config))
    assert problem.code == "secret_not_allowed"
    assert problem.path.startswith("nodes[0].config.")


@pytest.mark.parametrize("handler", ["call_external_service", "llm_service"])
def test_a_secret_for_a_service_is_fine(handler: str):
    plan_of(node("a", handler=handler, config={"headers": {"Authorization": f"Bearer {SECRET}"}}))


def test_a_version_that_was_accepted_before_still_compiles_but_not_its_data_nodes():
    stored = workflow(node("a", handler="echo", config={"x": SECRET}))
    (plan_node,) = compile_document(stored, stored=True).plan.nodes
    _, secrets = plan_node.config.resolve(Outputs({}))
    assert secrets, "so that the worker knows, and refuses"
    with pytest.raises(InvalidWorkflow):
        compile_document(workflow(node("a", handler="output", config={"x": SECRET})), stored=True)
