"""Conditions: CEL over outputs and input, and nothing that could run without a bound."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.definition.cel import evaluate_cel
from penstock.definition.condition import Condition, compile_condition
from penstock.definition.template import Missing, TemplateError
from tests.definition.documents import (
    Outputs,
    assert_linear,
    node,
    plan_of,
    problem_of,
    problems_of,
    workflow,
)
from tests.sizes import explored, size

KNOWN = ("vip", "user", "a b", "é", "a.b", "it's", 'say "hi"', "input_2")
OUTPUTS = {
    "vip": {"result": True},
    "user": {"data": {"orders": [1, 2, 3, 4], "name": "Ann", "tier": None}, "n": 3, "text": "True"},
    "a b": {"x": 1},
    "é": {"x": 2},
    "a.b": {"x": 3},
    "it's": {"x": 4},
    'say "hi"': {"x": 5},
    "input_2": [1],
}
SCOPE = Outputs(OUTPUTS, input_value={"lang": "en", "limit": 3})


def holds(source: str, scope: Outputs = SCOPE, node_ids: tuple[str, ...] = KNOWN) -> bool:
    return compile_condition(source, node_ids).evaluate(scope)


def refused(source: str, node_ids: tuple[str, ...] = KNOWN) -> tuple[str, str]:
    with pytest.raises(TemplateError) as error:
        compile_condition(source, node_ids)
    return error.value.code, str(error.value)


def failure(source: str, scope: Outputs = SCOPE, node_ids: tuple[str, ...] = KNOWN) -> str:
    with pytest.raises(Missing) as error:
        holds(source, scope, node_ids)
    return str(error.value)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("vip.result", True),
        ("!vip.result", False),
        ("vip.result && size(user.data.orders) > 3", True),
        ('user.data.name == "Ann" || user.n > 100', True),
        ("user.data.tier == null", True),
        ("has(user.data.tier) && !has(user.data.nope)", True),
        ("user.data.orders.exists(o, o > 3)", True),
        ("user.data.orders.all(o, o > 3)", False),
        ("user.data.orders.filter(o, o > 2).size() == 2", True),
        ("user.data.orders.map(o, o * 2)[0] == 2", True),
        ("2 in user.data.orders", True),
        ('"data" in user', True),
        ('user["data"]["name"].startsWith("A")', True),
        (r'user.data.name.matches(r"^A\w+$")', True),
        ("input_2[0] == 1", True),
        ('input.lang == "en" && params.limit == 3', True),
        ('execution.id == "the-execution" && execution.version == 3', True),
        ("user.n == 3.0 && user.n < 3.5", True),
        ("vip.result ? user.n == 3 : false", True),
        ("true", True),
        ("vip.result // && false", True),
        ("vip . result", True),
    ],
)
def test_a_condition_is_cel_over_outputs_and_input(
    source: str,
    result: bool,  # noqa: FBT001 -- an expectation
):
    assert holds(source) is result


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("vip.result && user.n > 1", {"vip", "user"}),
        ('user.data.name == "vip"', {"user"}),
        ("user.vip == 1", {"user"}),
        ("user.data.orders.all(vip, vip > 0)", {"user"}),
        ("input.vip == 1", set()),
        ('nodes["a b"].x == 1 && vip.result', {"a b", "vip"}),
        ("'{{ vip.result }}' == 'x' && user.n > 1", {"vip", "user"}),
        ("{{ input.x }} == 1", set()),
        ("true // vip", set()),
    ],
)
def test_the_nodes_that_a_condition_needs_are_known(source: str, names: set[str]):
    assert compile_condition(source, KNOWN).references == names


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ('nodes["a b"].x == 1', True),
        ("nodes['é'].x == 2", True),
        ('nodes["a.b"]["x"] == 3', True),
        ('nodes["it\'s"].x == 4', True),
        (r"nodes['it\'s'].x == 4", True),
        (r'nodes["say \"hi\""].x == 5', True),
        ("nodes['say \"hi\"'].x == 5", True),
        (r'nodes["\u00e9"].x == 2', True),
        ('nodes [ "vip" ] . result', True),
        ('nodes["a b"].x + nodes["é"].x == user.n', True),
    ],
)
def test_a_node_whose_id_is_no_identifier_is_named_in_brackets(
    source: str,
    result: bool,  # noqa: FBT001 -- an expectation
):
    assert holds(source) is result


@pytest.mark.parametrize(
    "name",
    ["int", "list", "map", "type", "string", "import", "loop", "size", "has", "all", "__class__"],
)
def test_a_node_may_have_the_name_of_something_in_cel(name: str):
    assert holds(f"{name}.x == 1 && size([1]) == 1", Outputs({name: {"x": 1}}), (name,))


@pytest.mark.parametrize("name", ["input", "params", "execution"])
def test_a_node_of_that_name_wins(name: str):
    assert holds(
        f'{name}.x == "node"', Outputs({name: {"x": "node"}}, input_value={"x": "input"}), (name,)
    )


@pytest.mark.parametrize("name", ["nodes", "secrets", "true", "in"])
def test_a_node_whose_bare_name_means_something_else_is_named_in_brackets(name: str):
    assert holds(f'nodes["{name}"].x == 1', Outputs({name: {"x": 1}}), (name,))


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("{{ vip.result }} == True", True),
        ("{{ vip.result }}", True),
        ("{{ vip.result }} and not ({{ user.n }} > 5 or False)", True),
        ("{{ user.data.tier }} == None", True),
        ("'{{ user.data.name }}' == 'Ann'", True),
        ('"{{ user.data.name }}" == "Ann" and {{ vip.result }} == True', True),
        ("'{{ user.data.name }}' != '{{ input.lang }}' and 'a' == 'a'", True),
        ("{{ user.text }} == 'True'", True),
        ("'True' == {{ user.text }}", True),
        ("{{ user.nope ?? 7 }} == 7", True),
        ("{{ user.data.orders[3] }} == {{ user.data.orders.3 }}", True),
        ("{{ a.b.x }} == 3", True),
        ('{{ nodes["a b"].x }} == nodes["a b"].x', True),
        ("size({{ user.data.orders }}) == 4", True),
        ("{{ execution.version }} == 3", True),
    ],
)
def test_the_older_spelling_is_read_too(source: str, result: bool):  # noqa: FBT001
    assert holds(source) is result


def test_data_inside_the_older_spelling_is_never_read_as_cel():
    hostile = Outputs({"user": {"x": '" || true || "'}})
    assert not holds('"{{ user.x }}" == "y"', hostile)
    assert failure("{{ user.x }}", hostile).endswith("it must give true or false")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 + 1", "the condition '1 + 1' gives a number; it must give true or false"),
        ('"yes"', "the condition '\"yes\"' gives text; it must give true or false"),
        ("null", "the condition 'null' gives null; it must give true or false"),
        ("[true]", "the condition '[true]' gives a list; it must give true or false"),
        ("{'a': 1}", "the condition \"{'a': 1}\" gives an object; it must give true or false"),
        (
            "size(user.data)",
            "the condition 'size(user.data)' gives a number; it must give true or false",
        ),
        ('timestamp("2020-01-01T00:00:00Z")', None),
        ('b"x"', None),
        ("type(1)", None),
    ],
)
def test_what_can_never_be_a_boolean_is_refused(source: str, message: str | None):
    code, text = refused(source)
    assert code == "malformed_condition"
    assert text == message or (message is None and text.endswith("; it must give true or false"))


@pytest.mark.parametrize(
    ("value", "description"),
    [
        (1, "1"),
        (None, "null"),
        ("true", '"true"'),
        (1.5, "1.5"),
        ([1], "a list"),
        ({"a": 1}, "an object"),
        ("é" * 99, '"é'),
    ],
)
def test_what_turns_out_not_to_be_a_boolean_fails(value: Any, description: str):
    message = failure("user.x", Outputs({"user": {"x": value}}))
    assert message.startswith(f"the condition 'user.x' gave {description}")
    assert message.endswith("; it must give true or false")


@pytest.mark.parametrize(
    "result", ["timestamp(user.x)", "duration(user.y)", "bytes(user.x)", "type(user.x)"]
)
def test_a_result_that_json_does_not_have_fails_with_words(result: str):
    scope = Outputs({"user": {"x": "2020-01-01T00:00:00Z", "y": "1s"}})
    message = failure(f"dyn({result})", scope)
    assert message.endswith("; it must give true or false")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("vpi.result", "the condition refers to 'vpi', which isn't a node"),
        ("vip.result && usr.n > 1", "the condition refers to 'usr', which isn't a node"),
        ('nodes["a c"].x', "the condition refers to 'a c', which isn't a node"),
        ("{{ usr.n }} == 1", "{{ usr.n }} refers to 'usr', which isn't a node"),
    ],
)
def test_an_unknown_name_is_refused(source: str, message: str):
    assert refused(source) == ("unknown_reference", message)


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("vipp.result", "vip"),
        ("inputs.lang == 1", "input"),
        ('nodes["usr"].x', "user"),
        ("{{ usre.n }} == 1", "user"),
    ],
)
def test_the_nearest_name_is_suggested(source: str, meant: str):
    problem = problem_of(node("vip"), node("user"), node("b", "vip", "user", condition=source))
    assert (problem.code, problem.path, problem.node_id) == (
        "unknown_reference",
        "nodes[2].condition",
        "b",
    )
    assert problem.message.endswith(f"; did you mean {meant!r}?")


UNREADABLE = {
    "vip.result ==": "the end isn't expected here (column 14)",
    "vip = 1": "'=' isn't expected here (column 5)",
    "vip.result && (user.n > 1": "missing ')' at the end (column 26)",
    "vip.result user.n": "'user' isn't expected here (column 12)",
    "é.x": "'é' isn't expected here (column 1)",
    "'{{ vip.result }} z' == 'y'": "'z' isn't expected here",
    "vip.result == True": "write true instead of True",
    "vip.result and user.n > 1": "write && instead of and",
    "not vip.result": "write ! instead of not",
    "1 + 'a' == 2": "+ can't be used with (int, string)",
    "user.n == 99999999999999999999": "an integer must fit in 64 bits",
    "(" * 33 + "true" + ")" * 33: "it is nested deeper than 32 levels",
}
MALFORMED = {
    "secrets.TOKEN == 'x'": "conditions can't use secrets",
    "{{ secrets.TOKEN }} == 'x'": "{{ secrets.TOKEN }}: conditions can't use secrets",
    "nodes[vip.result].x": (
        'in a condition, nodes must be followed by an id in quotes: nodes["its id"]'
    ),
    "size(nodes) > 1": 'in a condition, nodes must be followed by an id in quotes: nodes["its id"]',
    r'nodes["\x41"].x': r'nodes["\x41"]: use only JSON' + "'s escapes in an id",
    "x" * 5000: "the condition has 5,000 characters; the limit is 4,000",
}


@pytest.mark.parametrize(("source", "reason"), UNREADABLE.items())
def test_what_is_not_cel_is_refused_with_words_that_help(source: str, reason: str):
    assert refused(source) == (
        "malformed_condition",
        f"the condition {source!r} can't be read: {reason}",
    )


@pytest.mark.parametrize(
    ("source", "message"), MALFORMED.items(), ids=[key[:40] for key in MALFORMED]
)
def test_what_a_condition_may_not_hold_is_refused(source: str, message: str):
    assert refused(source) == ("malformed_condition", message)


def test_only_the_beginning_of_a_long_condition_is_shown():
    code, message = refused("vip.result && " * 100)
    excerpt = ("vip.result && " * 100)[:79] + "…"
    assert (code, message.partition(" can't")[0]) == (
        "malformed_condition",
        f"the condition {excerpt!r}",
    )


def test_a_malformed_reference_in_a_condition_is_a_malformed_template():
    assert refused("{{ vip.result") == ("malformed_template", "'{{ vip.result' has no closing }}")


@pytest.mark.parametrize(
    ("source", "name", "hint"),
    [
        ("len(user.data.orders) > 3", "len", "docs/functions.md lists all"),
        ("len (user) > 1", "len", "docs/functions.md lists all"),
        ("user.data.name.lowerASCII() == 'ann'", "lowerASCII", "did you mean lowerAscii()?"),
        ("user.data.name.startswith('A')", "startswith", "did you mean startsWith()?"),
        ("siz(user.data.orders) > 3", "siz", "did you mean size()?"),
    ],
)
def test_an_unknown_function_is_refused_with_the_one_that_was_meant(
    source: str, name: str, hint: str
):
    assert refused(source) == (
        "malformed_condition",
        f"the condition {source!r} calls {name}(), which isn't a function; {hint}",
    )


INSIDE = (
    "a condition can't use map, filter, all or exists inside another of them;"
    " put a transform before it"
)


@pytest.mark.parametrize(
    "source",
    [
        "[1].all(x, [1].all(y, true))",
        "user.data.orders.exists(x, user.data.orders.filter(y, y > x).size() > 1)",
        "[1] . all ( x , ( [2] . exists_one ( y , true ) ) )",
        "[1].all(x, [[1].map(y, y)][0] == [1])",
        "true // '\n && [1].all(x, [1].all(y, true)) //'",
        '"""\\"""" == "" || [1].all(x, [1].all(y, true)) || "" == ""',
        r'r"\" == "" || [1].all(x, [1].all(y, true)) || "" == "a"',
        "[1].all(x, 1.all(y, true))",
        "[1].//\nall(x, [1].all(y, true))",
    ],
)
def test_a_comprehension_inside_another_is_refused_however_it_is_hidden(source: str):
    assert refused(source) == ("malformed_condition", INSIDE)


@pytest.mark.parametrize(
    "source",
    [
        "[1].all(x, x > 0) && [1].all(y, y > 0)",
        "[1].filter(x, x > 0).exists(y, y > 0)",
        '"[1].all(x, [1].all(y" == ""',
    ],
)
def test_one_comprehension_after_another_is_fine(source: str):
    compile_condition(source, KNOWN)


def test_doubling_the_data_again_and_again_is_refused():
    message = "a condition can't use map twice; put a transform before it"
    assert refused('["a"]' + ".map(x, x + x)" * 26 + '[0] == "b"') == (
        "malformed_condition",
        message,
    )


def test_more_items_than_the_budget_allows_fail():
    scope = Outputs({"user": {"x": [1] * 20_000}})
    assert failure("user.x.all(i, i > 0)", scope) == (
        "the condition 'user.x.all(i, i > 0)' can't be evaluated:"
        " it looks at more than 10,000 items"
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("user.nope", 'there is no key "nope"; user has: data, n, text'),
        (
            "user.n > 1 && user.data.nope == 1",
            'there is no key "nope"; user.data has: orders, name, tier',
        ),
        (
            "has(user.zzz) || user.data.nope",
            'there is no key "nope"; user.data has: orders, name, tier',
        ),
        ("input.nope == 1", 'there is no key "nope"; input has: lang, limit'),
        ('nodes["a b"].nope == 1', 'there is no key "nope"'),
        ("user.data.orders[9] == 1", "there is no item 9 in a list of 4"),
        ("user.data.name > 3", "> can't be used with (string, int64)"),
        ("1 / (user.n - 3) == 1", "divide by zero"),
    ],
)
def test_what_cannot_be_evaluated_fails_with_the_reason(source: str, reason: str):
    assert failure(source) == f"the condition {source!r} can't be evaluated: {reason}"


def test_a_missing_key_of_the_older_spelling_names_the_reference_and_the_keys():
    assert (
        failure("{{ user.nope }} == 1")
        == "{{ user.nope }}: user has no key 'nope'; it has: data, n, text"
    )


@pytest.mark.parametrize("value", [10**30, 2**63, -(2**63), -(10**30)])
def test_integers_of_more_than_64_bits_are_compared_as_numbers(value: int):
    scope = Outputs({"user": {"x": value, "y": [{"z": value}]}})
    assert holds("user.x > 5", scope) is (value > 5)
    assert holds("user.y[0].z < 5", scope) is (value < 5)


def test_integers_of_64_bits_stay_exact():
    assert not holds("user.x == user.y", Outputs({"user": {"x": 2**63 - 1, "y": 2**63 - 2}}))


def test_other_names_of_outputs_work_as_in_templates():
    plan = plan_of(
        node("page", handler="http_request"),
        node(
            "b",
            "page",
            condition="page.body.ok && nodes['page'].result.ok && {{ page.response.ok }}",
        ),
    )
    condition = plan.nodes[1].condition
    assert condition is not None
    assert condition.evaluate(
        Outputs({"page": {"data": {"ok": True}}}, aliases={"page": plan.nodes[0].aliases})
    )


@pytest.mark.parametrize("condition", ["far.x", 'nodes["far"].x', "{{ far.x }} == 1"])
def test_a_condition_may_look_only_at_nodes_that_come_before(condition: str):
    plan = plan_of(node("far"), node("near", "far"), node("b", "near", condition=condition))
    assert plan.nodes[2].needs == {"far"}
    assert plan.nodes[2].dependencies == (1,)
    plan = plan_of(node("far"), node("near"), node("b", "near", condition=condition))
    assert plan.nodes[2].dependencies == (1, 0)
    problem = problem_of(node("far", "near"), node("near", "b"), node("b", condition=condition))
    assert (problem.code, problem.path, problem.node_id) == ("cycle", "nodes[2].condition", "b")


def test_conditions_of_several_nodes_are_all_checked():
    problems = problems_of(
        workflow(node("a", condition="x"), node("b", condition="1"), node("c", condition="a =="))
    )
    assert [(problem.code, problem.node_id) for problem in problems] == [
        ("unknown_reference", "a"),
        ("malformed_condition", "b"),
        ("malformed_condition", "c"),
    ]


def test_an_expression_gives_any_plain_value():
    assert evaluate_cel("[a.x, {'b': a.y}]", {"a": {"x": 1, "y": None}}) == [1, {"b": None}]
    with pytest.raises(
        Missing, match=r"the expression 'a\.z' can't be evaluated: there is no key \"z\"; a has: x"
    ):
        evaluate_cel("a.z", {"a": {"x": 1}})


def test_a_condition_can_be_compared_and_kept():
    assert compile_condition("vip.result", KNOWN) == compile_condition("vip.result", KNOWN)
    assert isinstance(compile_condition("vip.result", KNOWN), Condition)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@explored
@settings(deadline=None, max_examples=size(short=100, full=1000))
@given(
    st.text(max_size=30) | st.text(alphabet="vip.result()[]{}\"'\\&|!<>=/ 01xnodes,\n", max_size=40)
)
def test_any_text_is_compiled_or_refused_with_a_template_error(source: str):
    refusal, names = None, frozenset[str]()
    try:
        names = compile_condition(source, KNOWN).references
    except TemplateError as error:
        refusal = error
    assert names <= set(KNOWN)
    if refusal:
        assert refusal.code in {"malformed_condition", "malformed_template", "unknown_reference"}
        assert len(str(refusal)) < 1000


@settings(deadline=None)
@given(
    JSON,
    st.sampled_from(
        ["vip.result", "vip == vip", "vip.x > 1", "size(vip) > 1", "{{ vip }} == 'x'", "'a' in vip"]
    ),
)
def test_whatever_an_output_holds_there_is_a_boolean_or_a_reason(value: Any, source: str):
    result: object = None
    try:
        result = holds(source, Outputs({"vip": value}))
    except Missing as error:
        result = str(error)
    assert isinstance(result, (bool, str))


def test_conditions_take_linear_work():
    def compile_all(size: int) -> Any:
        nodes = [node(f"n{i}", f"n{i - 1}", condition=f"n{i - 1}.x > {i}") for i in range(1, size)]
        return lambda: plan_of(node("n0"), *nodes)

    assert_linear(compile_all, 30)
