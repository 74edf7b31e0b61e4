"""Expressions of `transform`: what they name, how it is bound, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import testing
from penstock.definition import compile_document
from penstock.definition.cel import to_json
from penstock.definition.plan import PlanNode
from tests.definition.documents import Outputs, node, plan_of, problem_of, workflow


def transform(expression: str, **fields: Any) -> dict[str, Any]:
    variables = fields.pop("variables", None)
    config: dict[str, Any] = {"expression": expression}
    if variables is not None:
        config["variables"] = variables
    return {"id": "t", "handler": "transform", "config": config, **fields}


def parents_of(*nodes: Any, **options: Any) -> list[str]:
    plan = compile_document(workflow(*nodes), **options).plan
    last = plan.nodes[-1]
    return [plan.nodes[parent].node_id for parent in last.dependencies]


def result_of(*nodes: dict[str, Any], given: dict[str, Any] | None = None, **options: Any) -> Any:
    """What the last node gives."""
    run = testing.run({"name": "w", "nodes": list(nodes)}, input=given or {}, **options)
    assert run.result.completed, run.result.error
    return run.result.output[nodes[-1]["id"]]["result"]


A = {"id": "a", "handler": "echo", "config": {"n": 2, "text": "'); b", "list": [1, 2.5]}}
B = {"id": "b", "handler": "noop", "depends_on": ["a"]}
DOTTED = {"id": "d.e f", "handler": "echo", "config": {"n": 5}}


class TestNames:
    @pytest.mark.parametrize(
        "expression",
        ["a.n", 'nodes["a"].n', "nodes['a'].n", "nodes.a.n", "inputs.a.n", "[1].map(x, a.n + x)"],
    )
    def test_make_dependencies(self, expression: str):
        assert parents_of(node("a"), transform(expression)) == ["a"]

    @pytest.mark.parametrize(
        "expression",
        [
            "'a' + \"a\"",
            "[1].map(a, a + 1)",
            "{'a': 1}.a",
            "b.a",
            "a(1) == 2 ? 1 : 2",
            "1 // a",
            "input.a",
        ],
    )
    def test_that_only_look_like_a_node_do_not(self, expression: str):
        document = workflow(node("a"), node("b"), transform(expression))
        plan = compile_document(document, stored=True).plan  # one calls what doesn't exist
        assert 0 not in plan.nodes[2].dependencies

    def test_of_given_variables_win(self):
        assert parents_of(node("a"), transform("a + 1", variables={"a": 1})) == []

    def test_are_nodes_before_they_are_the_input(self):
        assert parents_of(node("input"), transform("input.x")) == ["input"]

    def test_of_functions_are_no_nodes(self):
        assert parents_of(node("math"), transform("math.round(1.5)")) == []
        assert parents_of(node("math"), transform("math.x + math.round(1.5)")) == ["math"]
        assert parents_of(node("sum"), transform("sum([1]) + sum.x")) == ["sum"]

    @pytest.mark.parametrize(
        ("expression", "code", "message"),
        [
            ("aa.n", "unknown_reference", "the expression refers to 'aa', which isn't a node"),
            (
                "nodes['c'].n",
                "unknown_reference",
                "the expression refers to 'c', which isn't a node",
            ),
            ("inputs.c", "unknown_reference", "the expression refers to 'c', which isn't a node"),
            ("inptu.x", "unknown_reference", "which isn't a node; did you mean 'input'?"),
            (
                "sise(a)",
                "malformed_expression",
                "calls sise(), which isn't a function; did you mean",
            ),
            ("a.n.lenght()", "malformed_expression", "calls lenght(), which isn't a function"),
            ("a.n +", "malformed_expression", "can't be read: the end isn't expected here"),
            (
                "1 + 'a'",
                "malformed_expression",
                "can't be read: + can't be used with (int, string)",
            ),
            ("secrets.TOKEN", "secret_not_allowed", "expressions can't use secrets"),
            ("t.result", "not_an_ancestor", "its own output"),
            ("later.x", "cycle", "'t' refers to 'later', which only runs after it: t → later → t"),
            ("'" + "x" * 20_000 + "'", "malformed_expression", "the limit is 20,000"),
        ],
    )
    def test_that_mean_nothing_are_refused(self, expression: str, code: str, message: str):
        problem = problem_of(node("a"), transform(expression), node("later", "t"))
        assert (problem.code, problem.path) == (code, "nodes[1].config.expression")
        assert message in problem.message

    @pytest.mark.parametrize(
        "expression", ["aa.n", "nodes['c'].n", "sise(a)", "a.n +", "t.result", "later.x"]
    )
    def test_of_a_stored_document_fail_when_the_node_runs(self, expression: str):
        document = workflow(node("a"), transform(expression), node("later", "t"))
        plan = compile_document(document, stored=True).plan
        assert plan.nodes[1].dependencies in {(), (0,)}
        assert plan.nodes[1].config.value["expression"] == expression


class TestWhatIsBound:
    def bound(self, plan_node: PlanNode, outputs: dict[str, Any]) -> Any:
        return plan_node.config.resolve(Outputs(outputs, input_value={"n": 7}))[0]

    def test_parents_are_left_to_the_worker(self):
        last = plan_of(node("a"), transform("a.n + nodes['a'].n")).nodes[-1]
        assert last.config.slots == ()
        assert last.fixed_config is not None

    def test_other_ancestors_become_variables(self):
        expression = "a.n + nodes['a'].n"
        plan = plan_of(node("a"), node("b", "a"), transform(expression, depends_on="b"))
        last = plan.nodes[-1]
        assert last.dependencies == (1,)
        assert self.bound(last, {"a": {"n": 1}}) == {
            "expression": "a.n + __0.n",
            "variables": {"a": {"n": 1}, "__0": {"n": 1}},
        }
        assert last.needs == {"a"}

    def test_the_input_and_the_execution_become_variables(self):
        last = plan_of(transform("input.n + params.n")).nodes[-1]
        assert last.uses_input
        assert self.bound(last, {})["variables"] == {"input": {"n": 7}, "params": {"n": 7}}

    def test_names_that_are_taken_are_left_alone(self):
        last = plan_of(
            node("a"),
            node("b", "a"),
            transform("nodes['a'] + __0 + __1", variables={"__0": 1, "__1": 2}, depends_on="b"),
        ).nodes[-1]
        assert self.bound(last, {"a": 3}) == {
            "expression": "__2 + __0 + __1",
            "variables": {"__0": 1, "__1": 2, "__2": 3},
        }


class TestResults:
    @pytest.mark.parametrize(
        ("expression", "result"),
        [
            ("a.n * 2", 4),
            ("nodes['a'].n + inputs.a.n", 4),
            ("has(inputs.a) && !has(a.zzz)", True),
            ("input.amount * a.n", 20),
            ("params.amount", 10),
            ("execution.workflow + string(execution.version)", "w1"),
            ("nodes['d.e f'].n + 1", 6),
            ("{{ a.n }} + input.amount + {{ input.amount }}", 22),
            ("'<{{ a.text }}>'", "<'); b>"),
            ("{{ a.text }} + a.text", "'); b'); b"),
            ("a.list.map(x, x * 2)", [2, 5.0]),
            ("sum(a.list) + 1", 4.5),
        ],
    )
    def test_with_parents_and_input(self, expression: str, result: Any):
        assert result_of(A, DOTTED, transform(expression), given={"amount": 10}) == result

    @pytest.mark.parametrize(
        "expression",
        ["a.n * 2", "nodes['a'].n * 2", "nodes.a.n * 2", "[1].map(x, a.n * 2)[0]", "{{ a.n }} * 2"],
    )
    def test_with_ancestors(self, expression: str):
        assert result_of(A, B, transform(expression, depends_on="b")) == 4

    @pytest.mark.parametrize("depends_on", [[], ["page"], ["b"]])
    def test_with_the_other_names_of_keys(self, depends_on: list[str]):
        page = {"id": "page", "handler": "http_request", "config": {"url": "https://a.test/x"}}
        after = {"id": "b", "handler": "noop", "depends_on": ["page"]}
        stubs = {"call_external_service": {"data": {"n": 4}}}
        expression = "page.body.n + page.data.n + (has(page.body) ? 1 : 0)"
        last = transform(expression, depends_on=depends_on)
        assert result_of(page, after, last, handlers=stubs) == 8

    def test_an_ancestor_without_an_output_fails_the_node(self):
        skipped = {"id": "s", "handler": "noop", "condition": "false"}
        run = testing.run(
            {
                "name": "w",
                "nodes": [
                    skipped,
                    {**B, "depends_on": ["s"], "trigger_rule": "all_done"},
                    transform("s.x", depends_on="b"),
                ],
            }
        )
        assert run.result.error is not None
        assert "'s' has no output: it is SKIPPED" in run.result.error["message"]

    def test_compute_binds_its_references_too(self):
        compute = {"id": "c", "handler": "compute", "config": {"expression": "{{ a.text }} + '!'"}}
        assert result_of(A, compute) == "'); b!"
        compute["config"] = {"expression": "a.n * input.k"}
        assert result_of(A, compute, given={"k": 1.5}) == 3.0


@pytest.mark.parametrize("price", [10, 10.0, 10.5])
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.price * 1.2", lambda price: price * 1.2),
        ("1.5 + a.price", lambda price: price + 1.5),
        ("a.price - 0.5", lambda price: price - 0.5),
        ("a.price / 4.0", lambda price: price / 4),
        ("a.price % 3.0", lambda price: price % 3),
        ("sum([a.price, 1, 0.5])", lambda price: price + 1.5),
        ("max(a.price, 3)", lambda price: price),
        ("min([a.price, 3, 3.5])", lambda _: 3),
        ("sort([a.price, 3, 3.5])", lambda price: [3, 3.5, price]),
        ("[a.price].filter(x, x > 9.5 && x >= 10)", lambda price: [price]),
        ("[a.price].map(x, x * 2.0)[0]", lambda price: price * 2),
        ("math.round(a.price + 0.1)", lambda price: round(price + 0.1)),
        ("math.floor(a.price)", lambda _: 10),
        ("a.price > 9 && a.price > 9.5 && a.price != 9.9 ? 1 : 1.5", lambda _: 1),
    ],
)
def test_whole_and_decimal_numbers_mix(price: float, expression: str, expected: Any):
    a = {"id": "a", "handler": "echo", "config": {"price": price}}
    assert result_of(a, transform(expression)) == expected(price)
    comparison = f"({expression}) == {{{{ b.result }}}}"
    after = {"id": "c", "handler": "noop", "condition": comparison}
    run = testing.run(
        {"name": "w", "nodes": [a, {**transform(expression), "id": "b"}, after]}, input={}
    )
    assert run.result.nodes["c"]["state"] == "COMPLETED"


def test_keys_are_in_the_order_of_their_text():
    """CEL gives them in another order in each process; what is recorded must not differ."""
    value = to_json({"b": {"d": 1, "c": 2}, "a": 3})
    assert list(value) == ["a", "b"]
    assert list(value["b"]) == ["c", "d"]
