"""Every spelling that is accepted, and what it is read as."""

import json
from typing import Any

import pytest

from penstock.definition import Problem, Retry, compile_document, parse
from penstock.definition.fields import SECONDS_MAX
from penstock.definition.model import DEFAULT_TIMEOUT_SECONDS, HANDLER_ALIASES, HandlerDefaults
from penstock.definition.plan import PlanNode
from penstock.definition.read import content_hash
from penstock.engine.retry import delay_seconds
from tests.definition.documents import compiled, node, plan_of, problem_of, problems_of, workflow

EXAMPLE = """
{
  "name": "customer-report",
  "description": "optional",
  "timeout_seconds": 600,
  "on_failure": "fail_fast",
  "input_schema": {"type": "object", "required": ["user_id"]},
  "input": {"lang": "en"},
  "defaults": {"retry": {"max_attempts": 4}, "timeout_seconds": 60},
  "dag": {"nodes": [
    {"id": "input", "handler": "input"},
    {"id": "user",  "handler": "call_external_service", "dependencies": ["input"],
     "config": {"url": "https://api.example.com/users/{{ input.user_id }}",
                "headers": {"Authorization": "Bearer {{ secrets.API_TOKEN }}"}},
     "retry": {"max_attempts": 5, "initial_delay_seconds": 1, "multiplier": 2,
               "max_delay_seconds": 30,
               "jitter_seconds": 0.5},
     "timeout_seconds": 10},
    {"id": "vip", "handler": "decision", "dependencies": ["user"],
     "config": {"value_a": "{{ user.data.tier }}", "operator": "==", "value_b": "vip"}},
    {"id": "letter", "handler": "llm_service", "dependencies": ["vip", "user"],
     "condition": "vip.result",
     "config": {"model": "gpt-4o-mini",
                "prompt": "Write to {{ user.data.name }} in {{ input.lang }}."}},
    {"id": "output", "handler": "output", "dependencies": ["letter", "user"]}
  ]}
}
"""


def only(*, strict: bool = False, **fields: Any) -> PlanNode:
    """The node of a workflow that has just this one."""
    return compiled({"id": "a", "handler": "noop", **fields}, strict=strict).plan.nodes[0]


def warnings_of(*nodes: Any, **fields: Any) -> list[tuple[str, str, str]]:
    problems = compiled(*nodes, **fields).warnings
    return [(problem.code, problem.path, problem.message) for problem in problems]


class TestTheExample:
    def test_compiles_without_a_warning_even_strictly(self):
        result = compile_document(parse(EXAMPLE), strict=True)
        assert result.warnings == []
        plan = result.plan
        assert (plan.name, plan.timeout_seconds, plan.on_failure) == (
            "customer-report",
            600.0,
            "fail_fast",
        )
        assert plan.input == {"lang": "en"}
        assert [plan.nodes[i].node_id for i in plan.order] == [
            "input",
            "user",
            "vip",
            "letter",
            "output",
        ]
        assert (plan.result_nodes, plan.single_result) == (("output",), True)

    def test_gives_nodes_their_own_values_over_the_defaults(self):
        nodes = {
            plan_node.node_id: plan_node
            for plan_node in compile_document(parse(EXAMPLE)).plan.nodes
        }
        assert (nodes["user"].retry, nodes["user"].timeout_seconds) == (Retry(max_attempts=5), 10.0)
        assert (nodes["letter"].retry, nodes["letter"].timeout_seconds) == (
            Retry(max_attempts=4),
            60.0,
        )
        assert nodes["letter"].needs == {"user", "input", "vip"}
        assert [plan_node.is_data for plan_node in nodes.values()] == [
            True,
            False,
            True,
            False,
            True,
        ]

    def test_is_the_same_in_yaml_and_with_comments(self):
        document = parse(EXAMPLE)
        commented = EXAMPLE.replace('  "dag"', '  // the nodes\n  "dag"')
        assert parse(commented, form="jsonc") == parse(EXAMPLE, form="yaml") == document

    def test_keeps_the_document_as_it_was_submitted(self):
        document = parse(EXAMPLE)
        assert compile_document(document).definition.document == json.loads(EXAMPLE)


class TestTheTopLevel:
    def test_nodes_may_stand_at_the_top_or_in_a_dag(self):
        nodes = [node("a"), node("b", "a")]
        for document in (
            {"nodes": nodes},
            {"dag": {"nodes": nodes}},
            {"dag": None, "nodes": nodes},
        ):
            assert [plan_node.node_id for plan_node in compile_document(document).plan.nodes] == [
                "a",
                "b",
            ]

    def test_nodes_may_be_a_mapping_of_id_to_node(self):
        document = {
            "nodes": {"a": {"handler": "noop"}, "b": {"handler": "noop", "depends_on": ["a"]}}
        }
        plan = compile_document(document).plan
        assert [(plan_node.node_id, plan_node.dependencies) for plan_node in plan.nodes] == [
            ("a", ()),
            ("b", (0,)),
        ]

    def test_problems_in_a_mapping_of_nodes_point_at_the_key(self):
        problems = problems_of(
            {"nodes": {"retry_me": {"handler": "noop", "optional": "yes"}, "b": None}}
        )
        assert [(problem.code, problem.path) for problem in problems] == [
            ("bad_value", "nodes.retry_me.optional"),
            ("bad_value", "nodes.b"),
        ]

    def test_both_places_for_nodes_at_once_give_a_warning(self):
        message = '"nodes" has no effect, because "dag" is there too; remove one of them'
        assert warnings_of(node("a"), dag={"nodes": [node("b")]}) == [
            ("ignored_field", "nodes", message)
        ]

    def test_unknown_fields_of_the_dag_give_a_warning(self):
        result = compile_document({"dag": {"nodes": [node("a")], "edges": [], "metadata": 1}})
        assert [(problem.code, problem.path) for problem in result.warnings] == [
            ("unknown_field", "dag.edges")
        ]

    @pytest.mark.parametrize("name", [None, ""])
    def test_a_missing_name_is_made_from_the_content(self, name: str | None):
        document = {"name": name, "nodes": [node("a")]}
        plan_name = compile_document(document).plan.name
        assert plan_name == f"workflow-{content_hash(document)[:12]}"
        assert compile_document({"nodes": [node("a")], "name": name}).plan.name == plan_name
        assert compile_document({"name": name, "nodes": [node("b")]}).plan.name != plan_name

    def test_defaults_of_the_workflow(self):
        plan = plan_of(node("a"))
        assert (plan.on_failure, plan.timeout_seconds, plan.input, plan.input_schema) == (
            "fail_fast",
            None,
            {},
            None,
        )

    def test_timeout_is_another_name(self):
        assert plan_of(node("a"), timeout=5).timeout_seconds == 5.0

    def test_on_failure_may_be_continue(self):
        assert plan_of(node("a"), on_failure="continue").on_failure == "continue"


class TestNodes:
    def test_type_is_another_name_for_handler(self):
        assert plan_of({"id": "a", "type": "echo"}).nodes[0].handler == "echo"

    @pytest.mark.parametrize(("alias", "handler"), HANDLER_ALIASES.items())
    def test_handlers_have_other_names(self, alias: str, handler: str):
        assert plan_of(node("a", handler=alias)).nodes[0].handler == handler

    def test_depends_on_is_another_name_for_dependencies(self):
        plan = plan_of(node("a"), {"id": "b", "handler": "noop", "depends_on": ["a"]})
        assert plan.nodes[1].dependencies == (0,)

    def test_one_dependency_needs_no_list_and_naming_it_twice_is_once(self):
        plan = plan_of(node("a"), node("b", depends_on="a", dependencies=None), node("c", "a", "a"))
        assert [plan_node.dependencies for plan_node in plan.nodes] == [(), (0,), (0,)]

    @pytest.mark.parametrize(
        "fields", [{}, {"dependencies": None, "config": None}, {"depends_on": None}]
    )
    def test_null_or_missing_dependencies_and_config_are_empty(self, fields: dict[str, Any]):
        plan_node = only(**fields)
        assert (plan_node.dependencies, plan_node.config.value, plan_node.fixed_config) == (
            (),
            {},
            b"{}",
        )

    def test_defaults_of_a_node(self):
        plan_node = only()
        assert (plan_node.rule, plan_node.optional, plan_node.fails_with_dependency) == (
            "all_success",
            False,
            False,
        )
        assert (plan_node.timeout_seconds, plan_node.queue_timeout_seconds) == (
            DEFAULT_TIMEOUT_SECONDS,
            None,
        )
        assert (plan_node.queue, plan_node.condition, plan_node.retry) == ("noop", None, Retry())

    @pytest.mark.parametrize(
        ("seconds", "limit"),
        [(0, 300), (240, 300), (600, 660), (86400.5, 86460.5), ("{{ input.x }}", SECONDS_MAX)],
    )
    def test_a_sleep_has_a_time_limit_of_its_own(self, seconds, limit):
        config = {"seconds": seconds}
        assert only(handler="sleep", config=config).timeout_seconds == limit
        assert only(handler="sleep", config=config, timeout_seconds=5).timeout_seconds == 5
        nap = {"id": "a", "handler": "sleep", "config": config}
        of_workflow = compiled(nap, defaults={"timeout_seconds": 7})
        assert of_workflow.plan.nodes[0].timeout_seconds == 7

    def test_every_field_arrives(self):
        plan_node = only(
            trigger_rule="all_done",
            optional=True,
            on_dependency_failure="fail",
            queue="q",
            queue_timeout_seconds=3,
            timeout=7,
            condition=True,
        )
        assert (plan_node.rule, plan_node.optional, plan_node.fails_with_dependency) == (
            "all_done",
            True,
            True,
        )
        assert (plan_node.queue, plan_node.queue_timeout_seconds, plan_node.timeout_seconds) == (
            "q",
            3.0,
            7.0,
        )
        assert plan_node.condition is not None
        assert plan_node.condition.source == "true"

    @pytest.mark.parametrize("condition", [None, "", "  "])
    def test_an_empty_condition_is_none(self, condition: str | None):
        assert only(condition=condition).condition is None

    @pytest.mark.parametrize("value", [0.001, 1, 10 * 365 * 86400])
    def test_a_timeout_may_be_any_number_above_zero_up_to_ten_years(self, value: float):
        assert only(timeout_seconds=value).timeout_seconds == value

    @pytest.mark.parametrize(
        "name",
        [
            "NFCORE.RNASEQ.FASTQC_1",
            "a b",
            "é",
            "__class__",
            "x" * 256,
            " ",
            "}}",
            '"',
            "nodes",
            "secrets",
            "😀",
            "\u2028",
        ],
    )
    def test_any_text_can_be_an_id(self, name: str):
        plan = plan_of(
            node(name), node("after", name, config={"x": f"{{{{ nodes[{json.dumps(name)}].y }}}}"})
        )
        assert plan.nodes[0].node_id == name
        assert plan.nodes[1].needs == {name}

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("x" * 257, '"id" has 257 characters; the limit is 256'),
            ("", '"id" must not be empty'),
            ("a\nb", '"id" must not contain control characters, such as line breaks'),
            ("\x7f", '"id" must not contain control characters, such as line breaks'),
            ("\x9b31m", '"id" must not contain control characters, such as line breaks'),
            (7, '"id" must be text, not a number'),
            (["a"], '"id" must be text, not a list'),
            (None, 'the node has no "id"; give it a name that no other node has'),
        ],
    )
    def test_other_ids_are_refused(self, name: Any, message: str):
        assert problem_of({"id": name, "handler": "noop"}) == Problem(
            "bad_id", "nodes[0].id", message
        )


class TestHandlerDefaults:
    def test_stand_in_for_what_the_document_leaves_out(self):
        handlers = {
            "mine": HandlerDefaults(retry=Retry(max_attempts=9), timeout_seconds=8, queue="q")
        }
        document = workflow(
            node("a", handler="mine"),
            node("b", handler="mine", queue="r", timeout=1, retry={"max_attempts": 2}),
        )
        first, second = compile_document(document, handlers=handlers).plan.nodes
        assert (first.retry.max_attempts, first.timeout_seconds, first.queue) == (9, 8.0, "q")
        assert (second.retry.max_attempts, second.timeout_seconds, second.queue) == (2, 1.0, "r")

    def test_unknown_handlers_are_accepted_for_workers_that_come_later(self):
        document = workflow(node("a", handler="later"))
        assert (
            compile_document(document, allow_unknown_handlers=True).plan.nodes[0].queue == "later"
        )


class TestDefaults:
    def test_apply_to_every_node_that_says_nothing(self):
        defaults = {
            "retry": {"max_attempts": 7},
            "timeout": 5,
            "queue": "q",
            "queue_timeout_seconds": 6,
        }
        own = {"retry": {"max_delay": 3}, "timeout": 1, "queue": "r", "queue_timeout_seconds": 2}
        first, second = plan_of(node("a"), node("b", **own), defaults=defaults).nodes
        assert (first.retry.max_attempts, first.timeout_seconds) == (7, 5.0)
        assert (first.queue, first.queue_timeout_seconds) == ("q", 6.0)
        assert (second.retry, second.timeout_seconds) == (
            Retry(max_attempts=7, max_delay_seconds=3),
            1.0,
        )
        assert (second.queue, second.queue_timeout_seconds) == ("r", 2.0)

    def test_a_retry_of_the_workflow_is_a_default_too(self):
        assert plan_of(node("a"), retry_policy={"max_attempts": 2}).nodes[0].retry.max_attempts == 2

    def test_null_is_none_and_what_is_no_object_is_refused(self):
        assert plan_of(node("a"), defaults=None).nodes[0].retry == Retry()
        refused: list[Any] = [[], 0, "x", False]
        for value in refused:
            assert problem_of(node("a"), defaults=value).path == "defaults"

    def test_unknown_ones_give_a_warning(self):
        message = 'the field "trigger_rule" isn\'t known and has no effect'
        warnings = warnings_of(node("a"), defaults={"trigger_rule": "all_done"})
        assert warnings == [("unknown_field", "defaults.trigger_rule", message)]


class TestRetry:
    DIALECTS: tuple[tuple[str, dict[str, Any], Retry], ...] = (
        ("retry", {"max_attempts": 3, "delay_seconds": 2}, Retry(3, 2, multiplier=1)),
        (
            "retry",
            {
                "max_attempts": 5,
                "initial_delay_seconds": 3,
                "multiplier": 1.5,
                "max_delay_seconds": 9,
                "jitter_seconds": 0.25,
            },
            Retry(5, 3, 1.5, 9, 0.25),
        ),
        (
            "retry_policy",
            {
                "max_attempts": 3,
                "initial_backoff_seconds": 2,
                "backoff_multiplier": 3,
                "max_backoff_seconds": 60,
            },
            Retry(3, 2, 3, 60),
        ),
        (
            "retry_config",
            {
                "max_retries": 3,
                "initial_delay": 2,
                "max_delay": 60,
                "exponential_base": 3,
                "jitter": True,
            },
            Retry(4, 2, 3, 60, 0.5),
        ),
    )

    @pytest.mark.parametrize(("field", "value", "retry"), DIALECTS)
    def test_each_dialect_is_read_without_a_warning(
        self, field: str, value: dict[str, Any], retry: Retry
    ):
        assert only(strict=True, **{field: value}).retry == retry

    @pytest.mark.parametrize("field", ["retry", "retry_policy", "retry_config"])
    def test_the_fields_of_every_dialect_go_with_every_name(self, field: str):
        assert only(strict=True, **{field: {"max_retries": 0, "delay_seconds": 0}}).retry == Retry(
            1, 0, 1
        )

    @pytest.mark.parametrize("field", ["retry", "retry_policy", "retry_config"])
    def test_delay_seconds_is_the_delay_before_every_attempt(self, field: str):
        retry = only(
            strict=True, **{field: {"max_attempts": 5, "delay_seconds": 60, "jitter": False}}
        ).retry
        assert [delay_seconds(retry, attempt, "seed") for attempt in range(1, 5)] == [60.0] * 4

    @pytest.mark.parametrize(
        "spelling", ["initial_delay_seconds", "initial_backoff_seconds", "initial_delay"]
    )
    @pytest.mark.parametrize("field", ["retry", "retry_policy", "retry_config"])
    def test_the_first_delay_is_never_shortened_by_the_default_maximum(
        self, field: str, spelling: str
    ):
        retry = only(strict=True, **{field: {spelling: 60, "jitter_seconds": 0}}).retry
        assert retry.max_delay_seconds == 60
        assert [delay_seconds(retry, attempt, "seed") for attempt in range(1, 4)] == [60.0] * 3

    def test_a_multiplier_beside_delay_seconds_makes_it_grow(self):
        assert only(strict=True, retry={"delay_seconds": 2, "multiplier": 3}).retry.multiplier == 3

    def test_a_maximum_below_the_first_delay_gives_a_warning_and_has_no_effect(self):
        retry = {"initial_delay": 60, "max_delay": 10}
        message = (
            '"max_delay" (10) is below "initial_delay" (60) and has no effect: every delay is 60 s'
        )
        assert warnings_of(node("a", retry=retry)) == [
            ("ignored_field", "nodes[0].retry.max_delay", message)
        ]
        assert only(retry=retry).retry.max_delay_seconds == 60

    def test_a_node_with_a_delay_of_its_own_has_no_maximum_or_growth_that_nobody_asked_for(self):
        def own(defaults: dict[str, Any], retry: dict[str, Any]) -> Retry:
            return plan_of(node("a", retry=retry), defaults={"retry": defaults}).nodes[0].retry

        assert (
            own({"initial_delay_seconds": 60}, {"initial_delay_seconds": 1}).max_delay_seconds == 30
        )
        assert own({"delay_seconds": 5}, {"initial_delay_seconds": 1}).multiplier == 2
        assert own({"delay_seconds": 5}, {"max_attempts": 2}) == Retry(2, 5, 1)
        assert own({"multiplier": 3}, {"delay_seconds": 5}).multiplier == 1
        assert own({"multiplier": 3}, {"initial_delay_seconds": 5}).multiplier == 3

    def test_a_policy_written_in_python_keeps_its_first_delay_too(self):
        assert Retry(initial_delay_seconds=60).max_delay_seconds == 60
        assert Retry(initial_delay_seconds=60, max_delay_seconds=10).max_delay_seconds == 60

    def test_retries_count_one_less_than_attempts(self):
        assert (
            only(retry={"max_retries": 3}).retry == only(retry={"max_attempts": 4}).retry == Retry()
        )
        assert only(retry={"max_retries": 0}).retry.max_attempts == 1
        assert only(retry={"max_retries": 999}).retry == only(retry={"max_attempts": 1000}).retry

    @pytest.mark.parametrize(
        ("jitter", "seconds"), [(True, 0.5), (False, 0.0), (2, 2.0), (0.1, 0.1), (None, 0.5)]
    )
    def test_jitter_is_on_or_off_or_a_number_of_seconds(self, jitter: Any, seconds: float):
        assert only(retry={"jitter": jitter}).retry.jitter_seconds == seconds

    def test_an_empty_or_null_retry_is_the_default(self):
        assert (
            only(retry={}).retry
            == only(retry=None).retry
            == only(retry={"max_attempts": None}).retry
            == Retry()
        )


class TestTwoSpellingsOfOneThing:
    @pytest.mark.parametrize(
        ("fields", "ignored", "effective"),
        [
            ({"handler": "noop", "type": "echo"}, "type", "handler"),
            ({"dependencies": [], "depends_on": ["a"]}, "depends_on", "dependencies"),
            ({"timeout_seconds": 5, "timeout": 6}, "timeout", "timeout_seconds"),
            (
                {"retry": {"max_attempts": 1}, "retry_config": {"max_retries": 1}},
                "retry_config",
                "retry",
            ),
        ],
    )
    def test_the_first_wins_and_the_other_gives_a_warning(
        self, fields: dict[str, Any], ignored: str, effective: str
    ):
        message = (
            f'"{ignored}" has no effect, because "{effective}" is there too; remove one of them'
        )
        assert warnings_of(node("a", **fields)) == [
            ("ignored_field", f"nodes[0].{ignored}", message)
        ]
        assert problem_of_strict(node("a", **fields)).code == "ignored_field"

    @pytest.mark.parametrize(
        ("retry", "ignored", "effective"),
        [
            ({"max_attempts": 2, "max_retries": 2}, "max_retries", "max_attempts"),
            (
                {"initial_delay_seconds": 5, "delay_seconds": 6},
                "delay_seconds",
                "initial_delay_seconds",
            ),
        ],
    )
    def test_the_same_inside_retry(self, retry: dict[str, Any], ignored: str, effective: str):
        message = (
            f'"{ignored}" has no effect, because "{effective}" is there too; remove one of them'
        )
        assert warnings_of(node("a", retry=retry)) == [
            ("ignored_field", f"nodes[0].retry.{ignored}", message)
        ]

    def test_saying_the_same_twice_is_fine(self):
        same = {
            "type": "noop",
            "timeout": 5,
            "timeout_seconds": 5,
            "retry": {"max_attempts": 2, "max_retries": 1},
        }
        assert only(strict=True, **same).retry.max_attempts == 2


def problem_of_strict(*nodes: Any) -> Problem:
    problems = problems_of(workflow(*nodes), strict=True)
    assert len(problems) == 1, problems
    return problems[0]


class TestFieldsWithoutEffect:
    NOTES: dict[str, Any] = {  # noqa: RUF012 -- never changed
        "metadata": {"any": ["thing"]},
        "description": "two\nlines",
        "created_by": "me",
        "labels": {"team": "x"},
    }

    def test_are_kept_without_a_warning_everywhere(self):
        result = compiled(node("a", **self.NOTES), strict=True, version=3, **self.NOTES)
        assert result.warnings == []
        definition = result.definition
        assert (definition.description, definition.labels) == ("two\nlines", {"team": "x"})
        assert (
            definition.document["metadata"]
            == definition.document["nodes"][0]["metadata"]
            == {"any": ["thing"]}
        )

    def test_unknown_ones_are_kept_with_a_warning_that_names_the_nearest(self):
        result = compiled(node("a", dependancies=["b"], condtion="x"), time_out=5, zzz=1)
        assert [str(problem) for problem in result.warnings] == [
            (
                'time_out: the field "time_out" isn\'t known and has no effect; '
                "did you mean 'timeout'? [unknown_field]"
            ),
            'zzz: the field "zzz" isn\'t known and has no effect [unknown_field]',
            (
                'nodes[0].dependancies: the field "dependancies" isn\'t known and has no effect; '
                "did you mean 'dependencies'? [unknown_field]"
            ),
            (
                'nodes[0].condtion: the field "condtion" isn\'t known and has no effect; '
                "did you mean 'condition'? [unknown_field]"
            ),
        ]
        assert [problem.node_id for problem in result.warnings] == [None, None, "a", "a"]
        assert result.definition.document["zzz"] == 1

    def test_unknown_ones_inside_retry_give_a_warning(self):
        (warning,) = warnings_of(node("a", retry={"max_atempts": 2}))
        assert warning[1] == "nodes[0].retry.max_atempts"
        assert warning[2].endswith("did you mean 'max_attempts'?")

    def test_strictly_they_are_errors(self):
        problems = problems_of(workflow(node("a", hendler="x"), colour=1), strict=True)
        assert [(problem.code, problem.path) for problem in problems] == [
            ("unknown_field", "colour"),
            ("unknown_field", "nodes[0].hendler"),
        ]


class TestGraphs:
    def test_no_input_and_no_output_node_is_fine_and_the_sinks_are_the_result(self):
        plan = plan_of(node("a"), node("b", "a"), node("c", "a"))
        assert (plan.roots, plan.result_nodes, plan.single_result) == ((0,), ("b", "c"), False)

    def test_several_roots_sinks_and_components_are_fine(self):
        plan = plan_of(
            node("a"), node("b"), node("c", "a", "b"), node("x"), node("y", "x"), node("alone")
        )
        assert plan.roots == (0, 1, 3, 5)
        assert plan.result_nodes == ("c", "y", "alone")
        assert plan.dependency_counts == [0, 0, 2, 0, 1, 0]
        assert [plan_node.children for plan_node in plan.nodes] == [(2,), (2,), (), (4,), (), ()]

    def test_nodes_may_stand_before_what_they_depend_on(self):
        plan = plan_of(node("c", "b"), node("b", "a"), node("a"))
        assert [plan.nodes[i].node_id for i in plan.order] == ["a", "b", "c"]

    def test_the_output_node_is_the_result(self):
        plan = plan_of(node("a"), node("end", "a", handler="output"), node("c", "a"))
        assert (plan.result_nodes, plan.single_result) == (("end",), True)

    def test_of_several_output_nodes_the_one_called_output_is_the_result(self):
        first = node("one", handler="output")
        assert plan_of(first, node("output", handler="output")).result_nodes == ("output",)
        plan = plan_of(first, node("two", handler="output"))
        assert (plan.result_nodes, plan.single_result) == (("one", "two"), False)


def test_the_name_from_the_content_does_not_depend_on_the_order_of_keys():
    first = {"nodes": [{"id": "a", "handler": "noop"}], "labels": {"é": 1}}
    second = {"labels": {"é": 1}, "nodes": [{"handler": "noop", "id": "a"}]}
    assert compile_document(first).plan.name == compile_document(second).plan.name
