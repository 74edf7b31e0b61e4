"""What is refused at submission: every problem at once, with a code, a path and words that help."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.definition import Problem, compile_document, parse
from penstock.definition.parse import Limits
from penstock.definition.problems import MESSAGE_CHARACTERS_MAX, PATH_CHARACTERS_MAX, PROBLEMS_MAX
from penstock.definition.schema import schema_errors
from penstock.errors import InvalidWorkflow
from tests.definition.documents import assert_linear, node, problem_of, problems_of, work, workflow
from tests.sizes import explored, size

A, B, C = node("a"), node("b", "a"), node("c", "b")

# For each mistake: the nodes, and the problem's code, path, node and message.
GRAPH: dict[str, tuple[list[Any], str, str, str | None, str]] = {
    "nothing": (
        [],
        "empty_workflow", "nodes", None,
        'a workflow needs at least one node in "nodes"',
    ),
    "a duplicate id": (
        [A, B, A],
        "duplicate_id", "nodes[2].id", "a",
        "the id 'a' is taken by nodes[0]; ids must differ",
    ),
    "an unknown dependency": (
        [A, node("b", "a", "aa")],
        "unknown_dependency", "nodes[1].dependencies[1]", "b",
        "'b' depends on 'aa', which isn't a node; did you mean 'a'?",
    ),
    "an unknown dependency that is like no other": (
        [A, {"id": "b", "handler": "noop", "depends_on": ["zzz"]}],
        "unknown_dependency", "nodes[1].depends_on[0]", "b",
        "'b' depends on 'zzz', which isn't a node",
    ),
    "a self dependency": (
        [A, node("b", "a", "b")],
        "self_dependency", "nodes[1].dependencies[1]", "b",
        "'b' can't depend on itself; remove it from its dependencies",
    ),
    "a cycle": (
        [A, node("x", "a", "z"), node("y", "x"), node("z", "y"), node("after", "z")],
        "cycle", "nodes[1].dependencies", "x",
        "these nodes wait for each other in a cycle: x → y → z → x; remove one of the dependencies",
    ),
    "a long cycle": (
        [node(f"n{i}", f"n{(i - 1) % 40}") for i in range(40)],
        "cycle", "nodes[0].dependencies", "n0",
        ("these nodes wait for each other in a cycle: "
        "n0 → n1 → n2 → n3 → n4 → n5 → … → n36 → n37 → n38 → n39 → n0;"
        " remove one of the dependencies"),
    ),
    "a missing handler": (
        [{"id": "a"}],
        "missing_handler", "nodes[0].handler", "a",
        'the node has no "handler"; name what it runs, for example "noop"',
    ),
    "an unknown handler": (
        [node("a", handler="http_requst")],
        "unknown_handler", "nodes[0].handler", "a",
        "no handler is called 'http_requst'; did you mean 'http_request'?",
    ),
    "an unknown handler that is like no other": (
        [{"id": "a", "type": "zzz"}],
        "unknown_handler", "nodes[0].type", "a",
        ("no handler is called 'zzz';"
        " register it with @penstock.handler, or allow handlers that come later"),
    ),
    "a node that isn't an object": (
        ["a"],
        "bad_value", "nodes[0]", None,
        'a node is an object with "id" and "handler", not text',
    ),
}  # fmt: skip

REFERENCES: dict[str, tuple[list[Any], str, str, str | None, str]] = {
    "an unknown node": (
        [node("user"), node("b", "user", config={"deep": [{"x": "Dear {{ usr.name }}"}]})],
        "unknown_reference", "nodes[1].config.deep[0].x", "b",
        "{{ usr.name }} refers to 'usr', which isn't a node; did you mean 'user'?",
    ),
    "a root that is nearly right": (
        [node("a", config={"x": "{{ inputs.name }}"})],
        "unknown_reference", "nodes[0].config.x", "a",
        "{{ inputs.name }} refers to 'inputs', which isn't a node; did you mean 'input'?",
    ),
    "an unknown node by its full name": (
        [node("a b"), node("b", "a b", config={"x": '{{ nodes["ab"].x }}'})],
        "unknown_reference", "nodes[1].config.x", "b",
        "{{ nodes[\"ab\"].x }} refers to 'ab', which isn't a node; did you mean 'a b'?",
    ),
    "a node that comes later": (
        [node("a", config={"x": "{{ c }}"}), B, C],
        "cycle", "nodes[0].config.x", "a",
        ("'a' refers to 'c', which only runs after it: a → b → c → a;"
        " refer to a node that comes before"),
    ),
    "a node that comes later by another reference": (
        [A, node("b", config={"x": ["{{ c }}"]}), node("c", condition="b.ok")],
        "cycle", "nodes[1].config.x[0]", "b",
        ("'b' refers to 'c', which only runs after it: b → c → b;"
        " refer to a node that comes before"),
    ),
    "a node that isn't waited for": (
        [A, B, node("c", "b", config={"x": "{{ d }}"}, trigger_rule="one_success"), node("d")],
        "not_an_ancestor", "nodes[2].config.x", "c",
        ("'c' refers to 'd', which doesn't come before it; with one_success,"
        " name 'd' in depends_on, or a node that comes after it"),
    ),
    "itself": (
        [node("a", config={"x": "{{ a.y }}"})],
        "not_an_ancestor", "nodes[0].config.x", "a",
        "'a' refers to its own output; refer to a node that comes before",
    ),
    "a condition on a node that isn't waited for": (
        [A, node("b", condition="a.ok", trigger_rule="one_failed")],
        "not_an_ancestor", "nodes[1].condition", "b",
        ("'b' refers to 'a', which doesn't come before it; with one_failed, name 'a' in depends_on,"
        " or a node that comes after it"),
    ),
    "a condition on an unknown node": (
        [node("vip"), node("b", "vip", condition="vipp.result")],
        "unknown_reference", "nodes[1].condition", "b",
        "the condition refers to 'vipp', which isn't a node; did you mean 'vip'?",
    ),
    "a malformed template": (
        [A, node("b", "a", config={"x": "{{ a.x | upper }}"})],
        "malformed_template", "nodes[1].config.x", "b",
        ("{{ a.x | upper }} can't be read at '| upper';"
        ' only .key, [0], ["key"] and ?? are possible'),
    ),
    "a template that isn't closed": (
        [A, node("b", "a", config={"x": "Dear {{ a.x"})],
        "malformed_template", "nodes[1].config.x", "b",
        "'{{ a.x' has no closing }}",
    ),
    "a malformed condition": (
        [A, node("b", "a", condition="a.x ==")],
        "malformed_condition", "nodes[1].condition", "b",
        "the condition 'a.x ==' can't be read: the end isn't expected here (column 7)",
    ),
    "a secret where it would be shown": (
        [node("a", handler="output", config={"x": "{{ secrets.TOKEN }}"})],
        "secret_in_data_node", "nodes[0].config.x", "a",
        ("{{ secrets.TOKEN }}: the output of this node is kept and shown,"
        " so it can't hold secrets; use it in the node that needs it"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "code", "path", "node_id", "message"), GRAPH.values(), ids=GRAPH.keys()
)
def test_a_graph_that_cannot_run_is_refused(
    nodes: list[Any], code: str, path: str, node_id: str | None, message: str
):
    assert problem_of(*nodes) == Problem(code, path, message, node_id)


@pytest.mark.parametrize(
    ("nodes", "code", "path", "node_id", "message"), REFERENCES.values(), ids=REFERENCES.keys()
)
def test_a_reference_that_cannot_be_kept_is_refused(
    nodes: list[Any], code: str, path: str, node_id: str | None, message: str
):
    assert problem_of(*nodes) == Problem(code, path, message, node_id)


@pytest.mark.parametrize("document", [{}, {"nodes": []}, {"nodes": None}, {"nodes": {}}])
def test_an_empty_workflow_is_refused(document: dict[str, Any]):
    message = 'a workflow needs at least one node in "nodes"'
    assert problems_of(document) == [Problem("empty_workflow", "nodes", message)]
    assert problems_of({"dag": document}) == [Problem("empty_workflow", "dag.nodes", message)]


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ({"nodes": "a"}, "nodes", '"nodes" must be a list, not text'),
        ({"dag": {"nodes": 7}}, "dag.nodes", '"nodes" must be a list, not a number'),
        ({"dag": [A]}, "dag", '"dag" must be an object, not a list'),
    ],
)
def test_nodes_in_another_shape_are_refused(document: dict[str, Any], path: str, message: str):
    assert problems_of(document) == [Problem("bad_value", path, message)]


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"name": 7}, "name", '"name" must be text, not a number'),
        (
            {"name": "a\nb"},
            "name",
            '"name" must not contain control characters, such as line breaks',
        ),
        ({"name": "x" * 257}, "name", '"name" has 257 characters; the limit is 256'),
        ({"description": []}, "description", '"description" must be text, not a list'),
        ({"input": [1]}, "input", '"input" must be an object, not a list'),
        ({"labels": "x"}, "labels", '"labels" must be an object, not text'),
        (
            {"input_schema": "x"},
            "input_schema",
            '"input_schema" must be an object or true or false, not text',
        ),
        (
            {"on_failure": "fail-fast"},
            "on_failure",
            (
                '"on_failure" must be one of fail_fast, continue, not "fail-fast"; '
                "did you mean 'fail_fast'?"
            ),
        ),
    ],
)
def test_a_bad_field_of_the_workflow_is_refused(fields: dict[str, Any], path: str, message: str):
    assert problem_of(A, **fields) == Problem("bad_value", path, message)


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"handler": 7}, "handler", '"handler" must be text, not a number'),
        (
            {"dependencies": [1]},
            "dependencies",
            '"dependencies" must be a list of node ids, as in ["first", "second"]',
        ),
        ({"config": "x"}, "config", '"config" must be an object, not text'),
        ({"optional": "yes"}, "optional", '"optional" must be true or false, not text'),
        ({"dead_letter": 1}, "dead_letter", '"dead_letter" must be true or false, not a number'),
        ({"queue": ["q"]}, "queue", '"queue" must be text, not a list'),
        ({"condition": 7}, "condition", '"condition" must be text or true or false, not a number'),
        (
            {"trigger_rule": "all_sucess"},
            "trigger_rule",
            (
                '"trigger_rule" must be one of all_success, none_failed, all_done,'
                " one_success, one_failed, "
                "not \"all_sucess\"; did you mean 'all_success'?"
            ),
        ),
        (
            {"on_dependency_failure": True},
            "on_dependency_failure",
            '"on_dependency_failure" must be one of skip, fail, not true',
        ),
    ],
)
def test_a_bad_field_of_a_node_is_refused(fields: dict[str, Any], field: str, message: str):
    assert problem_of(node("a", **fields)) == Problem(
        "bad_value", f"nodes[0].{field}", message, "a"
    )


BAD_SECONDS = [
    (0, "must be above 0, not 0"),
    (-1, "must be above 0, not -1"),
    ("30s", 'must be a number, not "30s"'),
    (True, "must be a number, not true"),
    ([1], "must be a number, not a list"),
    (10**12, "must be at most 315,360,000, not 1000000000000"),
]


@pytest.mark.parametrize(("value", "message"), BAD_SECONDS)
@pytest.mark.parametrize("field", ["timeout_seconds", "timeout", "queue_timeout_seconds"])
def test_a_bad_timeout_of_a_node_is_refused(field: str, value: Any, message: str):
    expected = Problem("bad_timeout", f"nodes[0].{field}", f'"{field}" {message}', "a")
    assert problem_of(node("a", **{field: value})) == expected


@pytest.mark.parametrize(("value", "message"), BAD_SECONDS)
def test_a_bad_timeout_of_the_workflow_or_the_defaults_is_refused(value: Any, message: str):
    assert problem_of(A, timeout=value) == Problem("bad_timeout", "timeout", f'"timeout" {message}')
    expected = Problem("bad_timeout", "defaults.timeout_seconds", f'"timeout_seconds" {message}')
    assert problem_of(A, defaults={"timeout_seconds": value}) == expected


@pytest.mark.parametrize(
    ("retry", "field", "message"),
    [
        ({"max_attempts": 0}, "max_attempts", "must be a whole number from 1 to 1000, not 0"),
        ({"max_attempts": 1.5}, "max_attempts", "must be a whole number from 1 to 1000, not 1.5"),
        ({"max_attempts": True}, "max_attempts", "must be a whole number from 1 to 1000, not true"),
        ({"max_attempts": 1001}, "max_attempts", "must be a whole number from 1 to 1000, not 1001"),
        ({"max_retries": -1}, "max_retries", "must be a whole number from 0 to 999, not -1"),
        ({"max_retries": "3"}, "max_retries", 'must be a whole number from 0 to 999, not "3"'),
        ({"initial_delay": -0.5}, "initial_delay", "must be at least 0, not -0.5"),
        ({"delay_seconds": "1"}, "delay_seconds", 'must be a number, not "1"'),
        (
            {"max_delay_seconds": 10**12},
            "max_delay_seconds",
            "must be at most 315,360,000, not 1000000000000",
        ),
        ({"multiplier": 0.5}, "multiplier", "must be at least 1, not 0.5"),
        ({"exponential_base": 1e6}, "exponential_base", "must be at most 1,000, not 1000000.0"),
        ({"jitter": "yes"}, "jitter", 'must be a number, not "yes"'),
    ],
)
def test_bad_retry_values_are_refused_wherever_they_stand(
    retry: dict[str, Any], field: str, message: str
):
    for name in ("retry", "retry_policy", "retry_config"):
        expected = Problem("bad_retry", f"nodes[0].{name}.{field}", f'"{field}" {message}', "a")
        assert problem_of(node("a", **{name: retry})) == expected
    expected = Problem("bad_retry", f"defaults.retry.{field}", f'"{field}" {message}')
    assert problem_of(A, defaults={"retry": retry}) == expected


@pytest.mark.parametrize("value", [3, [], "always", True])
def test_a_retry_that_is_not_an_object_is_refused(value: Any):
    problem = problem_of(node("a", retry_policy=value))
    assert (problem.code, problem.path, problem.node_id) == (
        "bad_retry",
        "nodes[0].retry_policy",
        "a",
    )
    assert problem.message.startswith('"retry_policy" must be an object, not ')


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            {"type": "text"},
            (
                'type: "text" isn\'t a type; use string, number, integer, boolean, object, array'
                " or null"
            ),
        ),
        ({"pattern": "("}, 'pattern: "(" is not a "regex"'),
        (
            {"$ref": "https://example.com/schema"},
            (
                "a schema may not refer to another place (https://example.com/schema); "
                "put it under $defs"
            ),
        ),
    ],
)
def test_a_bad_input_schema_is_refused(schema: dict[str, Any], reason: str):
    message = f'"input_schema" can\'t be used: {reason}'
    assert problem_of(A, input_schema=schema) == Problem("bad_schema", "input_schema", message)


class TestInputs:
    SCHEMA: dict[str, Any] = {  # noqa: RUF012 -- never changed
        "type": "object",
        "required": ["user_id"],
        "properties": {
            "user_id": {"$ref": "#/$defs/id"},
            "more": {"items": {"$ref": "#/$defs/id"}},
        },
        "$defs": {"id": {"type": "integer"}},
    }

    def test_that_fit_have_no_errors(self):
        assert schema_errors(self.SCHEMA, {"user_id": 7, "more": [1, 2]}) == []
        assert schema_errors(True, [1]) == []  # noqa: FBT003 -- a schema may be true

    def test_that_do_not_fit_are_described_with_the_place(self):
        assert schema_errors(self.SCHEMA, {}) == ['"user_id" is a required property']
        errors = schema_errors(self.SCHEMA, {"user_id": "x", "more": [1, "y"]})
        assert sorted(errors) == [
            'more.1: "y" is not of type "integer"',
            'user_id: "x" is not of type "integer"',
        ]

    def test_with_very_many_mistakes_are_described_by_some_of_them(self):
        assert len(schema_errors(self.SCHEMA, {"user_id": 1, "more": ["x"] * 100})) == 20
        assert len(schema_errors(self.SCHEMA, {"user_id": 1, "more": ["x"] * 100_000})) == 1

    @pytest.mark.fault(
        "security", "regular expressions that take exponential time in other engines"
    )
    def test_are_matched_in_linear_time_and_schemas_may_refer_to_themselves(self):
        assert schema_errors({"pattern": "^(a+)+$"}, "a" * 100_000 + "b")
        tree = {"type": "object", "properties": {"children": {"items": {"$ref": "#"}}}}
        assert schema_errors(tree, {"children": [{"children": [{}, {}]}]}) == []
        assert schema_errors(tree, {"children": [{"children": [7]}]}) == [
            'children.0.children.0: 7 is not of type "object"'
        ]


def test_too_many_nodes_are_refused():
    problems = problems_of(workflow(A, B, C), limits=Limits(max_nodes=2))
    assert problems == [Problem("too_large", "nodes", "the workflow has 3 nodes; the limit is 2")]


def test_too_deep_a_config_is_refused_with_its_place():
    value: Any = 1
    for _ in range(70):
        value = [value]
    (problem,) = problems_of(workflow(node("a", config={"x": value})))
    assert (problem.code, problem.message) == ("too_deep", "nested deeper than 64 levels")
    assert problem.path.startswith("nodes[0].config.x[0][0]")


@pytest.mark.parametrize(
    ("value", "code"),
    [("NaN", "not_finite"), ('{"k": 1, "k": 1}', "duplicate_key"), (r'"\u0000"', "null_character")],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value: str, code: str):
    with pytest.raises(InvalidWorkflow) as refused:
        parse(f'{{"nodes": [{{"id": "a", "handler": "noop", "config": {{"x": {value}}}}}]}}')
    (problem,) = refused.value.problems
    assert problem.code == code
    assert problem.path == "nodes[0].config.x" + (".k" if code == "duplicate_key" else "")


def test_every_problem_is_reported_at_once():
    document = {
        "on_failure": "stop",
        "timeout": -1,
        "dag": {
            "nodes": [
                node("a", handler="nop"),
                node("a"),
                node("b", "a", "b", "zzz", timeout=0),
                node("c", "d", config={"x": "{{ zzz }}", "y": ["{{", "{{ a ?? }}"]}),
                node("d", "c", condition="a.x ==", retry={"max_attempts": 0, "jitter": -1}),
                {"handler": "noop"},
                7,
            ]
        },
    }
    problems = {(problem.code, problem.path, problem.node_id) for problem in problems_of(document)}
    assert problems == {
        ("bad_value", "on_failure", None),
        ("bad_timeout", "timeout", None),
        ("unknown_handler", "dag.nodes[0].handler", "a"),
        ("duplicate_id", "dag.nodes[1].id", "a"),
        ("bad_timeout", "dag.nodes[2].timeout", "b"),
        ("self_dependency", "dag.nodes[2].dependencies[1]", "b"),
        ("unknown_dependency", "dag.nodes[2].dependencies[2]", "b"),
        ("unknown_reference", "dag.nodes[3].config.x", "c"),
        ("malformed_template", "dag.nodes[3].config.y[0]", "c"),
        ("malformed_template", "dag.nodes[3].config.y[1]", "c"),
        ("cycle", "dag.nodes[3].dependencies", "c"),
        ("malformed_condition", "dag.nodes[4].condition", "d"),
        ("bad_retry", "dag.nodes[4].retry.max_attempts", "d"),
        ("bad_retry", "dag.nodes[4].retry.jitter", "d"),
        ("bad_id", "dag.nodes[5].id", None),
        ("bad_value", "dag.nodes[6]", None),
    }


def test_every_cycle_is_reported_also_one_behind_another():
    problems = problems_of(
        workflow(
            node("a", "b"),
            node("b", "a"),
            node("c", "b", "d"),
            node("d", "c"),
            node("x", "y"),
            node("y", "x"),
        )
    )
    assert [problem.message.partition(": ")[2].partition(";")[0] for problem in problems] == [
        "a → b → a",
        "c → d → c",
        "x → y → x",
    ]


def test_references_to_several_nodes_that_are_not_ancestors_are_all_reported():
    problems = problems_of(
        workflow(
            A,
            node("b"),
            node(
                "c",
                config={"x": "{{ a }} {{ b }}", "y": "{{ a.z }}"},
                condition="b.ok",
                trigger_rule="one_success",
            ),
        )
    )
    assert [(problem.path, problem.message.partition(",")[0]) for problem in problems] == [
        ("nodes[2].config.x", "'c' refers to 'a'"),
        ("nodes[2].config.x", "'c' refers to 'b'"),
    ]


def test_the_text_of_the_error_has_a_line_for_each_problem():
    with pytest.raises(InvalidWorkflow) as refused:
        compile_document(workflow(A, node("b", "c", "b")))
    assert str(refused.value) == (
        "nodes[1].dependencies[0]: 'b' depends on 'c', which isn't a node [unknown_dependency]\n"
        "nodes[1].dependencies[1]: 'b' can't depend on itself;"
        " remove it from its dependencies [self_dependency]"
    )


@explored
def test_a_cycle_of_very_many_nodes_is_found_without_recursion():
    count = size(short=10_000, full=100_000)
    document = {
        "nodes": [
            {"id": f"n{i}", "handler": "noop", "depends_on": [f"n{(i - 1) % count}"]}
            for i in range(count)
        ]
    }
    (problem,) = problems_of(document)
    assert (problem.code, problem.node_id, problem.path) == ("cycle", "n0", "nodes[0].depends_on")
    assert f"n0 → n1 → n2 → n3 → n4 → n5 → … → n{count - 4}" in problem.message


def test_a_document_with_nothing_but_mistakes_is_refused_in_linear_work():
    """A hint looks at every name, so only the first mistakes get one."""

    def refuse(size: int) -> Any:
        nodes = [
            node(f"n{i}", f"m{i}", handler=f"noop{i}", config={"x": f"{{{{ o{i} }}}}"})
            for i in range(size)
        ]
        return lambda: problems_of(workflow(*nodes))

    problems = refuse(1000)()
    assert len(problems) == PROBLEMS_MAX + 1
    assert problems[-1] == Problem(
        "more_problems", "", "and 2,900 more, which aren't listed; correct these first"
    )
    assert_linear(refuse, 100)


@pytest.mark.parametrize(("length", "count"), [(60, 50), (64, 50), (65, 50), (250, 50), (60, 1500)])
def test_hints_for_names_that_are_all_alike_take_a_bounded_amount_of_work(length: int, count: int):
    """26 KB of such names took 21 s."""
    alike = [
        node("a" * (length - 4) + f"{i:04}", "a" * (length - 5) + f"x{i:04}") for i in range(count)
    ]
    assert work(lambda: problems_of(workflow(*alike))) < 2_500_000


def test_the_warnings_of_a_document_are_bounded_too():
    fields = {f"unknown{i}": 1 for i in range(1000)}
    warnings = compile_document(workflow(node("a"), **fields)).warnings
    assert len(warnings) == PROBLEMS_MAX + 1
    assert warnings[-1].message == "and 900 more, which aren't listed; correct these first"


def test_messages_quote_only_the_start_of_long_names():
    endless = "y" * 100_000
    document = workflow(
        node(
            "x" * 256,
            endless,
            handler=endless,
            config={endless: f"{{{{ {'z' * 1500} }}}}"},
            trigger_rule=endless,
        ),
        **{endless: 1},
    )
    problems = problems_of(document, strict=True)
    assert {problem.code for problem in problems} >= {
        "unknown_handler",
        "unknown_dependency",
        "unknown_reference",
    }
    assert max(len(problem.message) for problem in problems) <= MESSAGE_CHARACTERS_MAX + 1
    assert max(len(problem.path) for problem in problems) <= PATH_CHARACTERS_MAX + 1


def test_problems_can_always_be_sent():
    names = ["\u2028", "é" * 200, "x" * 200]
    for name in names:
        document = workflow(node(name, name, config={name: "{{ zz }}"}), **{name: 1})
        for problem in problems_of(document, strict=True):
            json.dumps([problem.code, problem.path, problem.message, problem.node_id]).encode()
            assert len(problem.path) < 200


FIELDS = st.sampled_from(
    [
        "name",
        "dag",
        "nodes",
        "id",
        "handler",
        "type",
        "dependencies",
        "depends_on",
        "config",
        "condition",
        "retry",
        "retry_policy",
        "max_attempts",
        "max_retries",
        "jitter",
        "timeout",
        "queue",
        "optional",
        "dead_letter",
        "trigger_rule",
        "defaults",
        "input",
        "input_schema",
        "labels",
        "other",
    ]
)
WORDS = st.sampled_from(
    ["a", "b", "noop", "output", "", "{{ a }}", "{{ b.x ?? 1 }}", "{{", "a.x", "all_done"]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=6),
    max_leaves=20,
)
LIKE_A_NODE = st.dictionaries(FIELDS, ANYTHING, max_size=4).map(
    lambda fields: {"id": "a", "handler": "noop"} | fields
)


@explored
@settings(deadline=None, max_examples=size(short=100, full=1000))
@given(
    st.lists(LIKE_A_NODE, max_size=3), st.dictionaries(FIELDS, ANYTHING, max_size=3), st.booleans()
)
def test_whatever_a_document_holds_it_is_compiled_or_refused(
    nodes: list[Any],
    fields: dict[str, Any],
    strict: bool,  # noqa: FBT001 -- drawn
):
    problems: list[Problem] | None = None
    try:
        compile_document({"nodes": nodes} | fields, strict=strict)
    except InvalidWorkflow as error:
        problems = error.problems
    assert problems is None or all(
        problem.code and problem.message.encode() for problem in problems
    )
    assert problems != []
