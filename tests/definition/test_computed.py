"""Expressions in templates: CEL wherever a reference may stand."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.computed import Computed, compute
from penstock.definition.plan import compile_document
from penstock.definition.template import Missing, Reference, TemplateError, parse_text, render
from penstock.errors import InvalidWorkflow
from tests.definition.documents import Outputs, node, plan_of, problem_of

SCOPE = Outputs(
    {
        "list": {"items": [1, 2, 3, 4]},
        "price": {"data": {"amount": 10}},
        "names": ["Ann", "Bo"],
        "odd id": {"n": 2},
        "llm": {"response": "hello"},
        "row": {"net-price": 7, "net": 9},
        "n": 5,
    },
    input_value={"lang": "en", "n": 3},
    aliases={"llm": {"text": "response"}},
    outcomes={"bad": {"state": "FAILED", "error": {"category": "http", "status_code": 503}}},
)
NODES = ("list", "price", "names", "odd id", "llm", "row", "n", "bad", "net")


def rendered(text: str, scope: Outputs = SCOPE) -> Any:
    return render(parse_text(text, NODES, compute), scope)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{{ size(list.items) > 3 ? "many" : "few" }}', "many"),
        ("{{ price.data.amount * 1.2 }}", 12.0),
        ('{{ names.join(", ") }}', "Ann, Bo"),
        ("{{ list.items.filter(x, x > 2) }}", [3, 4]),
        ("{{ list.items.map(x, x * 2).filter(x, x > 4) }}", [6, 8]),
        ('{{ names.filter(x, x != "Bo").map(x, x + "!") }}', ["Ann!"]),
        ('{{ names.filter(x, x != "Bo").size() > 0.5 }}', True),
        ('{{ {"a": 1}.a }}', 1),
        ('{{ {"a": {"b": 1}} }}', {"a": {"b": 1}}),
        ('{{{"a":{"b":1}}}}', {"a": {"b": 1}}),
        ('{{ "}}" }}', "}}"),
        ("{{ '}}' + '{{' }}", "}}{{"),
        ('{{ nodes["odd id"].n + 1 }}', 3),
        ("{{ input.n + 1 }}", 4),
        ("{{ input.lang == 'en' }}", True),
        ("{{ llm.text + '!' }}", "hello!"),
        ("{{ [1, 2][0] }}", 1),
        ("{{ 1 + 2 }}", 3),
        ("{{ -n }}", -5),
        ("{{ null }}", None),
        ("{{ execution.version + 1 }}", 4),
        ("{{ n>3&&n<6 }}", True),
    ],
)
def test_an_expression_that_is_the_whole_text_keeps_its_type(text: str, value: Any):
    result = rendered(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ n }} + 1 = {{ n + 1 }}.", "5 + 1 = 6."),
        (
            "{{ names[0] }} has {{ size(list.items) }} and {{ list.items }}",
            "Ann has 4 and [1,2,3,4]",
        ),
        ('<{{ {"a": 1} }}>', '<{"a":1}>'),
        ("{{ n > 1 }}{{ n < 1 }}", "truefalse"),
    ],
)
def test_inside_text_it_goes_in_as_a_reference_does(text: str, value: str):
    assert rendered(text) == value


def test_a_plain_reference_is_none():
    for text in ("{{ n }}", "{{ price.data.amount }}", '{{ nodes["odd id"].n }}', "{{ a.b ?? 1 }}"):
        [piece] = parse_text(text, (*NODES, "a"), compute)
        assert isinstance(piece, Reference)


def test_a_key_with_an_operator_in_it_is_looked_for_first():
    assert rendered("{{ row.net-price }}") == 7
    assert rendered("{{ row.net - n }}") == 4
    assert rendered("{{ row.net/n }}") == 1
    assert rendered("{{ row.net % n }}") == 4
    assert rendered("{{ n in list.items }}") is False
    with pytest.raises(Missing) as error:
        rendered("{{ row.nope - n }}")
    assert str(error.value) == (
        "{{ row.nope - n }}: row has no key 'nope - n'; it has: net-price, net"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ price.data.nope + 1 ?? 0 }}", 0),
        ("{{ n / 0 ?? null }}", None),
        ('{{ size(names) ?? "}}" }}', 2),
        ('<{{ names[9] + "x" ?? "}}" }}>', "<}}>"),
        ('{{ has(price.x) ? price.x : "none" ?? 1 }}', "none"),
    ],
)
def test_a_fallback_stands_in_when_it_can_not_be_evaluated(text: str, value: Any):
    assert rendered(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ price.data.nope + 1 }}", 'there is no key "nope"; price.data has: amount'),
        ("{{ n / 0 + 1 }}", "can't be evaluated"),
        ("{{ names + 1 }}", "can't be used with"),
    ],
)
def test_what_can_not_be_evaluated_is_missing(text: str, message: str):
    with pytest.raises(Missing) as error:
        rendered(text)
    assert message in str(error.value)
    assert "the expression" in str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ nodes.bad.state }}", "FAILED"),
        ("{{ nodes.bad.error.category }}", "http"),
        ("{{ nodes.bad.error.status_code }}", 503),
        ('{{ nodes["bad"].state }}', "FAILED"),
        ('{{ nodes["bad"].error.category ?? "none" }}', "http"),
        ("{{ nodes.n.state }}", "COMPLETED"),
        ("{{ nodes.n.error }}", None),
        ('{{ nodes.n.error.message ?? "fine" }}', "fine"),
        ('{{ nodes["odd id"].state }}', "COMPLETED"),
        ('{{ nodes["odd id"].state ?? "none" }}', "none"),
        ("{{ nodes.odd id.state }}", "COMPLETED"),
        ("{{ nodes.bad.state == 'FAILED' }}", True),
        ("{{ nodes.bad.error.status_code >= 500 ? 'down' : 'odd' }}", "down"),
        ('{{ nodes["bad"].error.status_code + 1 }}', 504),
        ('{{ nodes["odd id"].state + "!" }}', "COMPLETED!"),
        ("{{ nodes.n.error == null }}", True),
    ],
)
def test_how_a_node_has_ended(text: str, value: Any):
    assert rendered(text) == value


def test_the_key_of_an_output_wins_over_how_the_node_has_ended():
    scope = Outputs({"job": {"state": "queued"}}, outcomes={"job": {"state": "COMPLETED"}})
    pieces = ['{{ nodes["job"].state }}', '{{ nodes["job"].state + "" }}', "{{ nodes.job.state }}"]
    values = [render(parse_text(text, ("job",), compute), scope) for text in pieces]
    assert values == ["queued", "queued", "COMPLETED"]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            "{{ size(list.items }}",
            "malformed_expression",
            "the expression 'size(list.items' can't be read: missing ')' at the end (column 16)",
        ),
        ("{{ n + }}", "malformed_expression", "(column 4)"),
        ("{{ nope + 1 }}", "unknown_reference", "the expression refers to 'nope'"),
        ("{{ siz(n) }}", "malformed_expression", "did you mean size()?"),
        ("{{ nop }}", "unknown_reference", "{{ nop }} refers to 'nop', which isn't a node"),
        ("{{ type }}", "unknown_reference", "{{ type }} refers to 'type', which isn't a node"),
        (
            "{{ n | upper }}",
            "malformed_template",
            "{{ n | upper }} can't be read at ' | upper'",
        ),
        (
            "{{ secrets.TOKEN + 'x' }}",
            "secret_not_allowed",
            "an expression can't use secrets; one stands alone, as in {{ secrets.NAME }}",
        ),
        ("{{ size(secrets.TOKEN) }}", "secret_not_allowed", "can't use secrets"),
        ("{{ (n }}", "malformed_expression", "can't be read"),
        ("{{ {n }}", "unknown_reference", "{n"),
        ("{{ 'x }}", "malformed_expression", "can't be read"),
        ("{{ n ? 1 }}", "malformed_expression", "can't be read"),
        ("{{ nodes.bad + 1 }}", "malformed_expression", "nodes.bad has state and error"),
        ("{{ nodes.bad.output }}", "malformed_template", "a node has state and error"),
        ("{{ nodes.nope.state }}", "unknown_reference", "refers to 'nope', which isn't a node"),
        ("{{ " + "n + " * 1001 + "n }}", "malformed_expression", "the limit is 4,000"),
    ],
)
def test_mistakes(text: str, code: str, message: str):
    with pytest.raises(TemplateError) as error:
        parse_text(text, NODES, compute)
    assert error.value.code == code
    assert message in str(error.value)


def test_a_mistake_in_a_document_has_its_path_and_node():
    problem = problem_of(
        node("a"), node("b", config={"deep": ["x", "{{ size(a.x }}"]}, dependencies=["a"])
    )
    assert (problem.code, problem.path, problem.node_id) == (
        "malformed_expression",
        "nodes[1].config.deep[1]",
        "b",
    )


def test_an_expression_makes_dependencies_and_needs_outputs():
    plan = plan_of(node("a"), node("b"), node("c", config={"x": "{{ a.n + b.n }}"}))
    assert plan.nodes[2].dependencies == (0, 1)
    assert plan.nodes[2].needs == {"a", "b"}
    assert plan.nodes[2].fixed_config is None
    [computed] = plan.nodes[2].config.computed
    assert isinstance(computed, Computed)


def test_how_a_node_has_ended_makes_no_dependency_and_needs_no_output():
    plan = plan_of(node("a"), node("c", dependencies=["a"], config={"x": "{{ nodes.a.state }}"}))
    assert plan.nodes[1].needs == frozenset()
    assert plan.nodes[1].outcomes == {"a"}
    for config in ({"x": "{{ nodes.a.state }}"}, {"x": "{{ nodes.a.state + '!' }}"}):
        problem = problem_of(node("a"), node("c", config=config))
        assert (problem.code, problem.path) == ("not_an_ancestor", "nodes[1].config.x")
    problem = problem_of(node("a"), node("c", condition="nodes.a.state == 'FAILED'"))
    assert (problem.code, problem.path) == ("not_an_ancestor", "nodes[1].condition")


@pytest.mark.parametrize(
    "fields",
    [
        {"config": {"x": "{{ execution.state }}"}},
        {"config": {"x": "{{ execution.error.message }}"}},
        {"config": {"x": "{{ execution.state == 'FAILED' }}"}},
        {"condition": "execution.state == 'FAILED'"},
    ],
)
def test_only_clean_up_knows_how_the_execution_ends(fields: dict[str, Any]):
    assert problem_of(node("a"), node("c", dependencies=["a"], **fields)).code == "not_clean_up"
    plan = plan_of(node("a"), node("c", dependencies=["a"], trigger_rule="all_done", **fields))
    assert plan.nodes[1].is_about_end


class TestKeys:
    def resolve(self, config: Any) -> Any:
        plan = plan_of(node("n"), node("names"), node("c", dependencies=["n"], config=config))
        resolved, secrets = plan.nodes[2].config.resolve(SCOPE)
        return resolved, [(secret.path, secret.pieces) for secret in secrets]

    def test_keys_are_templates_too_at_any_depth_and_stay_in_order(self):
        config = {"a": 1, "{{ names[0] }}": {"x{{ n + 1 }}": "{{ n }}", "y": 2}, "z": 3}
        resolved, _ = self.resolve(config)
        assert resolved == {"a": 1, "Ann": {"x6": 5, "y": 2}, "z": 3}
        assert list(resolved) == ["a", "Ann", "z"]

    def test_secrets_below_them_are_found_where_they_are_then(self):
        _, secrets = self.resolve({"{{ names[0] }}": {"token": ["{{ secrets.T }}"]}})
        assert secrets == [(("Ann", "token", 0), ("", "T", ""))]

    def test_two_keys_that_are_the_same_then_are_refused(self):
        with pytest.raises(Missing) as error:
            self.resolve({"Ann": 1, "{{ names[0] }}": 2})
        assert "gives 'Ann', which is there already" in str(error.value)

    def test_a_secret_in_a_key_is_refused(self):
        problem = problem_of(node("c", config={"{{ secrets.T }}": 1}))
        assert problem.code == "secret_not_allowed"


def test_a_stored_document_that_names_a_key_of_an_output_so_still_compiles():
    early = node("c", "a", trigger_rule="one_success", config={"x": '{{ nodes["b"].state }}'})
    document = {"name": "w", "nodes": [node("a"), node("b"), early]}
    assert compile_document(document, stored=True).plan.nodes[2].dependencies == (0,)
    with pytest.raises(InvalidWorkflow):
        compile_document(document)
